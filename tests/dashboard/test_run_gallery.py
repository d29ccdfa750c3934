"""The gallery of the Run page shows the edits that a run would make to a picture and its captions."""

import html
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_pages import bodies, open_form
from vlprobe import registry
from vlprobe.dashboard.run import gallery
from vlprobe.datasets import demo
from vlprobe.perturb import picture_changes
from vlprobe.render.words import value_label
from vlprobe.storage.store import Store
from vlprobe.types import Item, Picture


def test_only_items_with_a_picture_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    pictured = Item("a", Picture(tmp_path / "a.png"), ("A dog.",))
    dataset = SimpleNamespace(items=[pictured, Item("b", None, ("A cat.",))])
    monkeypatch.setattr(registry, "load_dataset", lambda *_: dataset)
    assert gallery.pictured_items("two", str(tmp_path)) == (1, 1, [pictured])


def assert_shows(at: AppTest, item: Item, severity: int) -> None:
    """Compare the gallery with the cases of the two probes."""
    assert not at.exception
    text = html.unescape(bodies(at))
    assert ">Before</th>" in text and ">After</th>" in text
    table = text[text.index(">Caption edit</th>") :].partition("</table>")[0]
    assert table.count("<tr>") == len(gallery.CAPTION_KINDS)
    lgip = registry.load_probe("lgip")
    edits, _ = lgip.cases(item, {**lgip.defaults, "kinds": list(gallery.lgip.ALL_KINDS)}, 42)
    subtypes = {case.edit.subtype for case in edits if case.edit.kind != "combined"}
    every = [re.findall(r"<td.*?>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", table)]
    rows = [row for row in every if len(row) == 3]  # the others are not in the caption
    texts = {case.texts[:2]: case.roles[1] for case in edits}
    for label, *texts_of_row in rows:  # each caption is next to its edit
        before, after = (re.sub("<.*?>", "", text) for text in texts_of_row)
        meaning = gallery.MEANINGS[texts[before, after]]
        assert label.removesuffix(" (not in this run)").endswith(f": {meaning}")
        assert 'class="vp-changed"' in "".join(texts_of_row) or before.lower() == after.lower()
    for kind in gallery.CAPTION_KINDS:
        absent = (
            re.escape(value_label(kind)) + r"( \(not in this run\))?</td><td>not in this caption"
        )
        is_missing = re.search(f">{absent}", table) is not None
        assert is_missing == (kind not in subtypes)
    options = {"changes": list(picture_changes.KINDS), "severities": [severity]}
    cases, dropped = registry.load_probe("pictures").cases(item, options, 42)
    every_caption = (image.caption for grid in at.get("image") for image in grid.proto.imgs)
    captions = [caption for caption in every_caption if caption]
    assert captions == ["Before", *(value_label(case.edit.subtype) for case in cases)]
    missing = [value_label(reason.partition(":")[0]) for reason in dropped]
    assert sorted([*captions[1:], *missing]) == sorted(map(value_label, picture_changes.KINDS))
    assert all(label in text for label in missing)


def test_the_gallery_begins_with_the_edits_of_the_run(monkeypatch, store: Store):
    at = open_form(monkeypatch, store)
    at.query_params["open"] = "gallery"
    at.session_state["run_lgip_flips"], at.session_state["run_lgip_kinds"] = ["number"], ["flip"]
    at.run()
    table = bodies(at).partition(">Caption edit</th>")[2]
    rows = re.findall(r"<tr><td.*?>(.*?)</td>", table)
    assert rows[0] == "Number: wrong"
    assert all(label.endswith(" (not in this run)") for label in rows[1:12])


def test_the_gallery_shows_the_run_s_edits_of_the_chosen_picture(monkeypatch, store: Store):
    at = open_form(monkeypatch, store)
    assert len(at.get("image")) == 1  # the first pictures of the drawn scenes
    at.query_params["open"] = "gallery"
    at.run()
    # LGIP changes no picture, so that only the picture itself is added, above its captions
    assert [len(grid.proto.imgs) for grid in at.get("image")] == [1, 4]
    assert "gallery_severity" not in {group.key for group in at.button_group}
    at.checkbox(key="run_probe_pictures").check().run()
    items = [item for item, _ in demo.draw_items("demo", store.root, 4)]
    assert_shows(at, items[0], 3)
    at.selectbox(key="gallery_picture").set_value(3)
    at.button_group(key="gallery_severity").set_value(5).run()
    assert_shows(at, items[3], 5)
