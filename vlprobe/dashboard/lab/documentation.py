"""The page that shows the documentation installed with vlprobe. Errors and information cards link to it."""

import functools
import posixpath
import re
from collections.abc import Mapping

import streamlit as st

from vlprobe.dashboard.state import choose
from vlprobe.storage.application import docs_folder

START = "index"
COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+\.webp)\)")
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)#]*)(#[^)]*)?\)")

TABLE = re.compile(r"^(?:\|.*\n)+", re.MULTILINE)
SCROLLED = (  # lets tables scroll on narrow screens, also with the keyboard
    '<div class="vp-scroll" role="region" tabindex="0" aria-label="Table">\n\n\\g<0>\n</div>\n'
)


def draw_page() -> None:
    """Draw a picker for documentation pages, and the page named in the URL (`page`)."""
    name = choose("Page", "page", titles(), START)
    file = docs_folder() / f"{name}.md"
    links = functools.partial(_link, posixpath.dirname(name))
    parts = PICTURE.split(COMMENT.sub("", file.read_text(encoding="utf-8")))
    with st.container(key="documentation"):
        for index in range(0, len(parts), 3):
            text = TABLE.sub(SCROLLED, LINK.sub(links, parts[index]))
            st.markdown(text, unsafe_allow_html=True)
            if index + 2 < len(parts):
                st.image(file.parent / parts[index + 2], alt=parts[index + 1])


@functools.cache  # the files are part of the installation
def titles() -> Mapping[str, str]:
    """Return the titles of all documentation pages, keyed by path in the docs folder without suffix. START is first."""
    folder = docs_folder()
    files = {
        file.relative_to(folder).with_suffix("").as_posix(): file
        for file in sorted(folder.rglob("*.md"))
    }
    names = sorted(files, key=lambda name: (name != START, name))
    return {
        name: files[name].read_text(encoding="utf-8").split("\n", 1)[0].strip("# ")
        for name in names
    }


def _link(folder: str, link: re.Match[str]) -> str:
    """Rewrite a link between documentation pages so that it works on the dashboard. Other links become plain text."""
    text, target, anchor = link.groups("")
    name = posixpath.normpath(posixpath.join(folder, target)).removesuffix(".md")
    return f"[{text}](docs?page={name}{anchor})" if name in titles() else text
