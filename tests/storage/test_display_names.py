"""Names that people give to models: shared, bounded, never part of a result."""

import pytest

from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.storage import access, display_names
from vlprobe.storage.store import Store


def test_a_model_that_was_renamed_has_its_new_name_until_it_is_taken_away(store: Store):
    display_names.rename(store, "demo:softmax", "  Our   baseline ")
    assert display_names.read(store) == {"demo:softmax": "Our baseline"}
    display_names.rename(store, "demo:softmax", "")
    assert display_names.read(store) == {}


def test_two_models_cannot_have_one_name(store: Store):
    display_names.rename(store, "a", "Ours")
    with pytest.raises(InvalidInput, match="already in use"):
        display_names.rename(store, "b", "Ours")
    display_names.rename(store, "a", "Ours")  # its own again
    assert display_names.read(store) == {"a": "Ours"}


@pytest.mark.parametrize("name", ["x" * 61, "a\0b", "\u202eevil", "a\u2066b"])
def test_a_name_that_cannot_be_shown_is_refused_in_one_line(store: Store, name: str):
    with pytest.raises(InvalidInput) as caught:
        display_names.rename(store, "a", name)
    assert str(caught.value).isprintable() or len(str(caught.value).splitlines()) == 1
    assert display_names.read(store) == {}


@pytest.mark.parametrize("content", ["[", "[]", '{"a": ""}', '{"a": "' + "x" * 99 + '"}'])
def test_a_damaged_file_leaves_the_stored_names_and_is_told(store: Store, content: str):
    path = store.root / "mine" / "display_names.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    assert display_names.read(store) == {}
    with pytest.raises(VlprobeError):
        display_names.check(store)


def test_a_read_only_cache_keeps_its_names(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(access.READ_ONLY, "1")
    with pytest.raises(VlprobeError, match="read-only"):
        display_names.rename(store, "a", "Ours")


def test_the_version_changes_with_every_name(store: Store):
    versions = [display_names.version(store)]
    for name in ("Ours", "Their own", ""):
        display_names.rename(store, "a", name)
        versions.append(display_names.version(store))
    assert len(set(versions)) == len(versions)
