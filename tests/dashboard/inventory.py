"""The contents of the thirteen pages of the first dashboard, and their places today.

`inventory.txt` has a line for every control, table column, export, note and link: the old page, a description, the view
in which a test finds it, its kind and its name there, its place in the new dashboard, and whether it is still
at its old place or at its new one. `test_inventory.py` opens each view once and looks for all its lines.

If you replace a page, set the status of its lines to `new`, write the view, kind and name under which each is found
now, and add the views of the new pages to VIEWS. Never remove a line.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast, get_args

from vlprobe import registry

Kind = Literal[
    "title",  # its text
    "header",
    "text",  # part of any text of the page: words, tables, remarks, data of components
    "tooltip",  # part of a widget's help
    "column",  # a heading of a table
    "option",  # KEY/TEXT: part of a choice of the widget with this key
    "alt",  # part of the description of a picture or a chart
    "page_link",  # its label
    "chart",  # its key
    "code",  # part of it
    "component",  # its name
    "button",  # of this kind and those below: its key, or its label
    "button_group",
    "checkbox",
    "dialog",
    "download_button",
    "expander",
    "file_uploader",
    "form",
    "multiselect",
    "number_input",
    "pagination",
    "popover",
    "radio",
    "selectbox",
    "slider",
    "text_area",
    "text_input",
    "toggle",
]
Status = Literal["old", "new"]
Cache = Literal["old", "empty", "ranked", "repaired", "shipped"]
HERE = Path(__file__).resolve().parent
LEAST = 330  # lines at the beginning; there may be more
LGIP, ROCOCO, VISLA = "e9a732220766c19d", "7bd3d45868fef2cc", "ac2309473456af81"


@dataclass(frozen=True)
class Row:
    """One item of the first dashboard, and how a test finds it today."""

    page: str  # of the first dashboard
    what: str
    view: str  # a key of VIEWS
    kind: Kind
    name: str
    place: str  # in the new dashboard
    status: Status


@dataclass(frozen=True)
class View:
    """A page with the parameters with which a test opens it."""

    page: str  # a file in pages/, without its suffix
    query: dict[str, str] = field(default_factory=dict)
    cache: Cache = "old"
    press: str = ""  # the key of a button
    read_only: bool = False


_LGIP = {"set": LGIP, "model": "demo:softmax"}
_ALL = _LGIP | {"outcome": "all"}
_COMPARED = {
    "set": LGIP,
    "model": "demo:softmax",
    "with": "control:random|control:constant",
    "kind": "flip",
}
VIEWS = {
    "home": View("home", cache="shipped"),
    "home first": View("home", cache="empty"),
    "lab": View("lab"),
    "run": View("run", {"open": "how_lgip|machine"}),
    "run every": View(
        "run",
        {"open": "|".join(f"how_{name}" for name in registry.names("probes"))},
        press="all_probes",
    ),
    "run done": View("run", {"job": "6b0282c1ca6caa"}),
    "run stopped": View("run", {"job": "6b0282cac25f6d"}),
    "run going": View("run", {"job": "1"}),
    "lab checked": View("lab", press="check_stored"),
    "run first": View("run", cache="empty"),
    "run read-only": View("run", read_only=True),
    "explore": View("explore", _ALL),
    "explore many": View("explore", _ALL | {"kind": "combined", "cards": "every"}),
    "explore beside": View(
        "explore",
        _LGIP | {"other": "control:random", "bucket": "all", "case": "location-0.png/0/6"},
    ),
    "explore case": View("explore", _ALL | {"case": "location-0.png/0/6"}),
    "explore moved": View("explore", _LGIP | {"kind": "paraphrase"}),
    "explore mixed": View(
        "explore",
        {
            "set": ROCOCO,
            "model": "control:random",
            "kind": "t2i",
            "outcome": "all",
            "case": "color-1.png/1/mix:0.9:seed1",
        },
    ),
    "explore none": View("explore", _LGIP | {"words": "zebra"}),
    "explore gone": View("explore", {"set": "0000000000000000"}),
    "compare": View("compare", _COMPARED | {"open": "measured|map|details"}),
    "compare area": View("compare", _COMPARED | {"area": "-1,-1;1,-1;1,1;-1,1"}),
    "compare ties": View("compare", _COMPARED | {"with": "control:constant", "open": "measured"}),
    "compare both": View("compare", _COMPARED | {"kind": "combined", "bucket": "all"}),
    "compare case": View("compare", _COMPARED | {"case": "location-0.png/0/6"}),
    "compare none": View("compare", {"set": LGIP, "model": "demo:softmax", "with": ""}),
    "playground": View("try", {"models": "demo:softmax"}),
    "playground heavy": View("try", {"models": "openclip:none"}),
    "repair": View("repair"),
    "repair first": View("repair", {"training": "2"}),
    "repair trained": View("repair", {"training": "3"}),
    "repair three": View(
        "repair", {"before": "dealt:1", "control": "dealt:2", "after": "control:random"}, "repaired"
    ),
    "breakdown": View("breakdown", {"set": LGIP, "metric": "invariance_error"}),
    "tradeoff": View("tradeoff", {"set": LGIP, "model": "demo:softmax", "open": "details"}),
    "tradeoff folds": View("tradeoff", {"set": LGIP, "open": "kinds|numbers|paper"}),
    "breakdown other": View("breakdown", {"set": VISLA}),
    "retrieval": View("retrieval", {"set": ROCOCO}),
    "retrieval asked": View("retrieval", {"set": ROCOCO}, press="load_encode_texts"),
    "retrieval first": View("retrieval", cache="empty"),
    "pairs": View("pairs"),
    "triplets": View("triplets", {"set": VISLA}),
    "rankings": View("rankings", cache="ranked"),
    "series": View("series", cache="shipped"),
    "models": View("models"),
    "models first": View("models", cache="empty"),
}


def _row(line: str) -> Row:
    page, what, view, kind, name, place, status = (part.strip() for part in line.split(" | "))
    assert view in VIEWS, line
    assert kind in get_args(Kind) and status in get_args(Status), line
    return Row(page, what, view, cast(Kind, kind), name, place, cast(Status, status))


ROWS = tuple(
    _row(line)
    for line in (HERE / "inventory.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
)
