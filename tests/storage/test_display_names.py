"""Display names of models: shared, limited, and never part of a result."""

import pytest

from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.storage import access, display_names
from vlprobe.storage.store import Store


def test_a_renamed_model_has_its_display_name_until_it_is_removed(store: Store):
    display_names.rename(store, "demo:softmax", "  Our   baseline ")
    assert display_names.read(store) == {"demo:softmax": "Our baseline"}
    display_names.rename(store, "demo:softmax", "")
    assert display_names.read(store) == {}


def test_two_models_cannot_have_the_same_display_name(store: Store):
    display_names.rename(store, "a", "Ours")
    with pytest.raises(InvalidInput, match="already in use"):
        display_names.rename(store, "b", "Ours")
    display_names.rename(store, "a", "Ours")  # the same name for the same model
    assert display_names.read(store) == {"a": "Ours"}


@pytest.mark.parametrize("name", ["x" * 61, "a\0b", "\u202eevil", "a\u2066b"])
def test_a_display_name_with_unprintable_characters_is_refused_in_one_line(store: Store, name: str):
    with pytest.raises(InvalidInput) as caught:
        display_names.rename(store, "a", name)
    assert str(caught.value).isprintable() or len(str(caught.value).splitlines()) == 1
    assert display_names.read(store) == {}


@pytest.mark.parametrize("content", ["[", "[]", '{"a": ""}', '{"a": "' + "x" * 99 + '"}'])
def test_a_damaged_file_of_display_names_is_ignored_and_reported(store: Store, content: str):
    path = store.root / "mine" / "display_names.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    assert display_names.read(store) == {}
    with pytest.raises(VlprobeError):
        display_names.check(store)


def test_a_read_only_cache_refuses_a_new_display_name(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(access.READ_ONLY, "1")
    with pytest.raises(VlprobeError, match="read-only"):
        display_names.rename(store, "a", "Ours")


def test_the_version_changes_with_every_display_name(store: Store):
    versions = [display_names.version(store)]
    for name in ("Ours", "Their own", ""):
        display_names.rename(store, "a", name)
        versions.append(display_names.version(store))
    assert len(set(versions)) == len(versions)
