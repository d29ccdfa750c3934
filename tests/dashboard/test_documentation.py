"""The documentation is a page of the dashboard; errors link to it, and labels show no markup."""

import posixpath
import re

from vlprobe.dashboard.lab.documentation import LINK, PICTURE, titles
from vlprobe.render.words import SHIPPED_MODELS
from vlprobe.storage.application import docs_folder

LINKED = re.compile(r"\]\(docs\?page=([\w/]+)")


def test_a_documentation_page_shows_its_text_and_links_to_other_pages(open_probe):
    at = open_probe("docs", page="numbers/lgip")
    assert not at.exception and not at.error
    text = "\n".join(block.value for block in at.markdown)
    assert "the share of flips with `s(I, c) > s(I, c*)`" in text and "<!--" not in text
    assert "(docs?page=reference/metrics#lgip)" in text


def test_pictures_of_a_page_are_shown_with_their_descriptions(open_probe):
    at = open_probe("docs")
    pictures = [picture for element in at.get("image") for picture in element.proto.imgs]
    assert len(pictures) == 1 and "a wall of photographs" in pictures[0].alt
    assert "![" not in "".join(block.value for block in at.markdown)


def test_every_link_and_picture_of_the_documentation_exists():
    for name in titles():
        file = docs_folder() / f"{name}.md"
        text = re.sub(r"```.*?```|`[^`\n]*`", "", file.read_text("utf-8"), flags=re.DOTALL)
        assert all((file.parent / path).is_file() for _, path in PICTURE.findall(text))
        for _, target, _ in LINK.findall(PICTURE.sub("", text)):
            inside = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            assert inside.removesuffix(".md") in titles() or inside.startswith("../"), (
                name,
                inside,
            )


def test_an_error_links_to_the_documentation_page_that_it_names(open_probe):
    at = open_probe("lab")
    at.session_state["problem"] = "'a_b.jsonl' is not valid: see docs/edits.md."
    (error,) = at.run().error
    (name,) = LINKED.findall(error.value)
    at = open_probe("docs", page=name)
    assert at.selectbox(key="page").value == "edits"
    assert at.markdown[0].value.startswith("# Custom caption edits")


def test_labels_for_screen_readers_have_no_markdown_escapes(open_probe, monkeypatch):
    name = "GPT-4V (no_pictures), 1st"
    monkeypatch.setitem(SHIPPED_MODELS, "control:random", (name, ""))
    labels = [control.proto.label for control in open_probe("explore").get("button_group")]
    assert [label for label in labels if label.startswith(name)]
    assert [label for label in labels if "\\" in label] == []
