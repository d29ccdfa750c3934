"""The pages of a site: frames without a word of data, which their scripts fill.

The policy in their head lets only scripts and style sheets of the same folder in, and pictures that are in
these scripts; nothing is fetched, no form is sent, no text becomes markup.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import htpy

from vlprobe import __version__
from vlprobe.render.html.style import STYLE
from vlprobe.surfaces.site import scripts

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True)
class Page:
    """A page of a site: its file, its title, the components that it draws and their parts."""

    name: str
    title: str
    components: tuple[tuple[str, ...], ...]  # each a component, then the scripts that it shares
    site_scripts: tuple[str, ...]  # scripts of the site


PAGES = (
    Page("index", "Home", (("home",), ("figures",)), ("home",)),
    Page("explore", "Explore", (("wall",), ("patterns",)), ("drawer", "explore")),
    Page("compare", "Compare", (("forest",), ("wall",)), ("drawer", "compare")),
    Page("tradeoff", "Trade-off", (("tradeoff", "placing"),), ("tradeoff",)),
    Page("present", "Present", (("slides",),), ("present",)),
)


def files(title: str, pages: Sequence[Page]) -> dict[str, str]:
    """Every page, script and style sheet but the data, by its path in the site.

    Args:
        title: Title of the site; plain text.
        pages: Those that it has.
    """
    components = {names[0]: names[1:] for page in pages for names in page.components}
    site_scripts = {name for page in pages for name in page.site_scripts}
    colors = re.search(r":root \{.*?\n\}", STYLE, re.DOTALL)
    return {
        **{f"{page.name}.html": _html(title, page, pages) for page in pages},
        "site.css": f"{colors[0] if colors else ''}\n{scripts.asset('site.css')}",
        "scripts/base.js": (scripts.COMPONENTS / "base.js").read_text(encoding="utf-8"),
        **{
            f"scripts/{name}.js": scripts.asset(f"{name}.js")
            for name in ("site", *sorted(site_scripts))
        },
        **{
            f"components/{name}.js": scripts.component(name, *shared)
            for name, shared in components.items()
        },
        **{f"components/{name}.css": scripts.sheets(name) for name in components},
    }


def _html(title: str, page: Page, pages: Sequence[Page]) -> str:
    sources = [
        "scripts/base.js",
        "scripts/site.js",
        "data/index.js",
        *(f"components/{names[0]}.js" for names in page.components),
        *(f"scripts/{name}.js" for name in page.site_scripts),
    ]
    document = htpy.html(lang="en")[
        htpy.head[
            htpy.meta(charset="utf-8"),
            htpy.meta(http_equiv="Content-Security-Policy", content=POLICY),
            htpy.meta(name="viewport", content="width=device-width, initial-scale=1"),
            htpy.meta(name="referrer", content="no-referrer"),
            htpy.title[f"{page.title} · {title}"],
            htpy.link(rel="stylesheet", href="site.css"),
        ],
        htpy.body[
            htpy.header[
                htpy.a(".brand", href="index.html")[title],
                htpy.nav(aria_label="Pages")[
                    (
                        htpy.a(
                            href=f"{linked.name}.html",
                            data_page=linked.name,
                            aria_current="page" if linked is page else None,
                        )[linked.title]
                        for linked in pages
                    )
                ],
            ],
            htpy.main[htpy.noscript["This page needs scripts; all of them lie beside it."]],
            htpy.footer[
                htpy.p(".about.quiet.small"),
                htpy.p(".quiet.small")[
                    f"Made by vlprobe {__version__}. These pages fetch nothing from anywhere else."
                ],
            ],
            (htpy.script(src=source) for source in sources),
        ],
    ]
    return "".join(document.iter_chunks())
