"""Malicious links and uploads: the page opens or shows a one-line error, and runs nothing."""

import io
import os
import re
import zipfile
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import tiers
from tests.dashboard.test_pages import open_page, words
from tests.hostile.test_hostile_pictures import REFUSED, SHOWN, SVG, plain, saved
from tests.hostile.test_hostile_words import Page
from vlprobe import registry
from vlprobe.dashboard.play import playground
from vlprobe.errors import InvalidInput
from vlprobe.storage import access
from vlprobe.storage.store import Store

PAGES = {  # each page and the parameters that it reads, except those in ALL_PAGES
    "models": ("model",),
    "tradeoff": ("up", "printed"),
    "compare": ("base", "with", "other", "kind", "area", "bucket", "tool", "type", "open", "model"),
    "present": ("tab", "quiz", "round", "room", "kind", "case"),
    "try": (
        "from",
        "item",
        "caption",
        "models",
        "for",
        "map",
        "edit",
        "with",
        "lam",
        "draw",
        "show",
        "k",
        "word",
    ),
    "repair": ("before", "control", "after", "training"),
    "breakdown": ("metric", "by"),
    "retrieval": ("edit", "measure", "reader", "captions", "looker", "failure", "number"),
    "pairs": ("subset", "score", "number"),
    "triplets": ("subset", "number", "accuracy", "size_subset", "over"),
    "rankings": ("number", "depth"),
    "published": ("paper", "table", "remark", "words"),
}
ALL_PAGES = ("set", "unit", "average", "job", "page")
TEXTS = {
    "a path": "../../../../etc/passwd",
    "NUL": "a\0b",
    "astral": "\U0001f469\u200d\U0001f680\U0002070e",
    "right to left": "\u202evpevil\u202c",
    "a hundred thousand letters": "a" * 100_000,
    "a bomb of lists": "[" * 30_000,
    "a bomb of objects": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "HTML": "<script>vpevil()</script><img src=x onerror=vpevil()>",
    "an attribute": "\"><svg/onload=vpevil()> ' onmouseover='vpevil()",
    "Markdown": "[vpevil](javascript:vpevil()) ![vpevil](https://x/vpevil.png) **vpevil** $vpevil$ :red[vpevil]",
    "lines": "a\r\nSet-Cookie: vpevil\n\n\u2028",
    "SQL": "'; ATTACH '/etc/passwd'; --",
    "a template": "{{7*7}} {0.__class__} %s",
    "an unknown model": "openclip:nope/nope",
    "a model that is a file": "demo:softmax@/etc/passwd",
    "a model that is a device": "openclip:local-dir:/dev",
    "many names": "|".join(["demo:softmax"] * 50),
}
NUMBERS = {
    **{
        text: text
        for text in (
            "nan",
            "inf",
            "-inf",
            "1e999",
            "-1",
            "0",
            "-0",
            "1_000",
            "0x10",
            "0.5",
            "٣٤٥",
            "²",
            "",
        )
    },
    "a hundred thousand digits": "9" * 100_000,
    "corners that are no numbers": "nan,nan;inf,1;1e999,1",
    "corners beyond all": "1e308,1e308;-1e308,1e308;0,-1e308",
    "a list": ["a", "<b>", "3"],
    "a list of nothing": [""],
    "a list of one, many times": ["demo:weak"] * 100,
}
pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning:PIL"
)  # about EXIF that Pillow cannot read
MARKDOWN = r"(?<!\\)\]\(javascript|(?<!\\)!\[vpevil|(?<!\\)\*\*vpevil|(?<!\\)<(script|img|svg)"
RED = saved(plain(), "PNG")


def check_harmless(at: AppTest) -> None:
    """Check that the page has no traceback, no injected element or Markdown and only one-line errors."""
    assert not at.exception, at.exception[0].message
    bodies = [element.proto.body for element in at.get("html")]
    assert [markup for body in bodies for markup in Page(body).running] == []
    for element in [*at.markdown, *at.error, *at.info, *at.warning, *at.success, *at.caption]:
        assert not re.search(MARKDOWN, element.value), element.value
    for error in at.error:
        assert error.value.isprintable()
        assert len(error.value) < 4000


OFTEN = ("compare", "try", "repair", "published")  # in the default suite


@pytest.mark.parametrize("page", tiers(PAGES, OFTEN))
def test_a_malicious_link_opens_the_page(
    every_probe: Store, monkeypatch: pytest.MonkeyPatch, page: str
):
    """Use every hostile value once and every parameter at least twice; a link has all parameters."""
    monkeypatch.setattr(playground, "MODELS", ("control:random",))  # loads faster
    monkeypatch.setenv(access.QUIZ, "1")
    names = [*PAGES[page], *ALL_PAGES]
    values = [*TEXTS.values(), *NUMBERS.values()]
    at = open_page(monkeypatch, every_probe, page)
    titles = [title.value for title in at.title]
    for start in range(0, len(values), max(len(names), 9)):
        at.query_params.clear()
        for place, value in enumerate(values[start : start + max(len(names), 9)]):
            at.query_params[names[(place + start) % len(names)]] = value
        at.run()
        check_harmless(at)
        assert len(at.title) == len(titles)
        if page != "try":  # its heading names the fooled models
            assert [title.value for title in at.title] == titles


@pytest.mark.parametrize(
    "name", ["../../../../tmp/<img src=x onerror=vpevil()>.png", "x" * 9000 + ".PNG"]
)
def test_the_file_name_of_an_upload_is_never_interpreted(
    store: Store, monkeypatch: pytest.MonkeyPatch, name: str
):
    at = open_page(
        monkeypatch,
        store,
        "try",
        models=["control:random"],
        caption="A red wall.",
    )
    for data in (RED, b"", SVG.encode()):
        at.file_uploader(key="play_file").set_value((name, data, "image/png")).run()
        check_harmless(at)
        assert len(at.error) == (data != RED)
    assert not [path for path in store.root.rglob("*") if path.is_file()]


def test_an_upload_is_decoded_or_refused_in_one_line(store: Store, monkeypatch: pytest.MonkeyPatch):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("../../evil.png", RED)
    files = {what: (data, 0) for what, (data, _) in SHOWN.items() if "color profile" not in what}
    files |= {what: (data, 1) for what, (data, _) in REFUSED.items()}
    files |= {
        "an archive that climbs": (archive.getvalue(), 1),
        "a picture before it": (RED + archive.getvalue(), 0),
    }
    at = open_page(monkeypatch, store, "try", models=["control:random"])
    for what, (data, errors) in files.items():
        at.file_uploader(key="play_file").set_value(("a.jpg", data, "image/jpeg")).run()
        check_harmless(at)
        assert len(at.error) == errors, what
    assert not [path for path in store.root.rglob("*") if path.is_file()]


def test_a_link_loads_no_model_file_before_a_button_is_pressed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    loaded = []
    monkeypatch.setattr(registry, "load_model", lambda name: loaded.append(name))
    name = f"demo:softmax@{tmp_path / 'a.safetensors'}"
    at = open_page(monkeypatch, store, "try", models=[name], caption="A red wall.")
    assert loaded == []
    assert [button.key for button in at.button if button.key.startswith("load_")] == [
        f"load_{name}"
    ]
    assert "Choose a model" in words(at) + at.info[0].value


def test_a_pipe_as_model_file_is_refused_without_blocking(tmp_path: Path):
    os.mkfifo(tmp_path / "a.safetensors")
    with pytest.raises(InvalidInput, match="Not a regular file"):
        registry.load_model(f"demo:softmax@{tmp_path / 'a.safetensors'}")
