"""Table layouts that vlprobe recognizes. A layout assigns roles, such as caption and foil, to the columns.

The layouts match the files that each dataset had released by November 2026. Column names are case-insensitive.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from vlprobe.datasets.csv import FOIL_COLUMNS
from vlprobe.errors import InvalidInput, NotFound

Kind = Literal[
    "pair",
    "foils",
    "triplet",
    "captions",
    "options",
    "questions",
    "rows",
    "svo",
    "people",
    "statements",
    "statement foils",
    "statement triplets",
]
BOXES = (("bbox_x", "bbox_y", "bbox_w", "bbox_h"), ("x", "y", "width", "height"))
# Columns that identify a layout without a name, best first
IMAGES = ("image", "filename", "file_name", "filepath", "image_path", "image_file", "jpg", "png")
CAPTIONS = ("caption", "captions", "title", "text", "sentence", "txt", "sentences")
IDS = ("__key__", "id")
ROLES = ("image", "image2", "caption", "caption2", "foil", "id", "subset")


@dataclass(frozen=True, slots=True)
class Layout:
    """A table layout, which says what each column contains.

    The role `image2` is a picture that the foil fits; `caption2` is a second caption with the same meaning.
    """

    name: str
    kind: Kind
    columns: Mapping[str, str]  # role to column, lowercase
    box: tuple[str, ...] = ()  # x, y, width and height of the crop
    needs: tuple[str, ...] = ()  # other columns that identify it
    no_tags: Collection[str] = field(default=())
    # Names of pictures begin with a slash that stands for the folder of pictures
    rooted: bool = False
    # A column with the number of annotators who distinguished the foil from the caption
    votes: str = ""

    @property
    def required(self) -> frozenset[str]:
        """Return the columns that identify the layout."""
        optional = ("id", "subset")
        roles = {column for role, column in self.columns.items() if role not in optional}
        return frozenset({*roles, *self.needs, *self.box})


def _pair(name: str, first: str, second: str, foil: str, foil_image: str, **more: str) -> Layout:
    columns = {"image": first, "image2": foil_image, "caption": second, "foil": foil, **more}
    return Layout(name, "pair", columns)


def _foils(name: str, image: str, caption: str, foil: str, **more: str) -> Layout:
    return Layout(name, "foils", {"image": image, "caption": caption, "foil": foil, **more})


def _boxed(layout: Layout, box: tuple[str, ...]) -> Layout:
    return replace(layout, box=box)


CREPE_FOILS = ("hard_negs", *(f"valid_hard_negs_{kind}" for kind in ("atom", "comp", "combined")))
ANSWERS = tuple(f"image_{image}_question_{text}" for image in (0, 1) for text in (0, 1))
LAYOUTS = (
    _pair("winoground", "image_0", "caption_0", "caption_1", "image_1"),
    _pair("eqben", "image0", "caption0", "caption1", "image1"),
    _pair("colorswap", "image_1", "caption_1", "caption_2", "image_2"),
    _pair("vismin", "image_0", "text_0", "text_1", "image_1", subset="category"),
    replace(
        _pair("vismin-files", "image_path", "caption", "edited_caption", "edited_image_path"),
        rooted=True,
    ),
    _pair("bivlc", "image", "caption", "negative_caption", "negative_image", subset="type"),
    Layout(
        "naturalbench",
        "questions",
        {"image": "image_0", "image2": "image_1", "id": "index", "subset": "question_type"},
        needs=("question_0", "question_1", *ANSWERS),
    ),
    Layout(
        "mmvp-vlm",
        "rows",
        {"image": "question id", "caption": "statement", "subset": "type"},
        needs=("type",),
    ),
    Layout(
        "svo",
        "svo",
        {"image": "pos_image_id", "image2": "neg_image_id", "caption": "sentence"},
        needs=("pos_triplet", "neg_triplet"),
        no_tags=("pos_url", "neg_url"),
    ),
    Layout(
        "whatsup",
        "options",
        {"image": "image_path", "caption": "caption_options"},
    ),
    Layout(
        "negbench-mcq",
        "options",
        {"image": "image_path", "subset": "correct_answer_template"},
        needs=("correct_answer", "caption_0", "caption_1"),
    ),
    _boxed(
        _foils("aro", "image_path", "true_caption", "false_caption", subset="relation_name"),
        BOXES[0],
    ),
    *(_boxed(_foils("crepe", "image_id", "caption", column), BOXES[1]) for column in CREPE_FOILS),
    *(_foils("crepe", "image_id", "caption", column) for column in CREPE_FOILS),
    replace(
        _foils("valse", "image_file", "caption", "foil", subset="linguistic_phenomena"),
        votes="mturk.caption",
    ),
    _foils("negclip", "filepath", "title", "neg_caption"),
    Layout(
        "sugarcrepe-pp",
        "triplet",
        {
            "image": "filename",
            "caption": "caption",
            "caption2": "caption2",
            "foil": "negative_caption",
        },
    ),
    _foils("sugarcrepe", "filename", "caption", "negative_caption"),
    _foils("foil-it", "image", "caption", "foil"),
    _foils("vl-checklist", "image", "pos", "neg"),
    Layout(
        "socialcounterfactuals",
        "people",
        {"image": "image", "caption": "caption"},
        needs=("counterfactual_set",),
    ),
    Layout(
        "vsr", "statements", {"image": "image", "caption": "caption"}, needs=("label", "relation")
    ),
    Layout(
        "vsr-foils",
        "statement foils",
        {"image": "image", "caption": "caption", "subset": "relation"},
        needs=("label", "relation"),
    ),
    Layout(
        "vsr-triplets",
        "statement triplets",
        {"image": "image", "caption": "caption"},
        needs=("label", "relation"),
    ),
    Layout("negbench", "captions", {"image": "filepath", "caption": "captions"}),
    Layout("open_clip", "captions", {"image": "filepath", "caption": "title"}),
)
NAMES = tuple(dict.fromkeys(layout.name for layout in LAYOUTS))


def recognised(file: str, present: Collection[str], name: str, named: Mapping[str, str]) -> Layout:
    """Recognize the layout of a table by its columns.

    Args:
        file: The table, for errors.
        present: The table's columns, in lowercase.
        name: Name of the layout from `+layout=`; "" for the first that fits.
        named: Columns that options assign to roles, by role. They need not be recognized.

    Raises:
        NotFound: there is no layout with that name.
        InvalidInput: no layout fits, or the column in an option does not exist.
    """
    named = {role: column.lower() for role, column in named.items()}
    for role, column in named.items():
        if column not in present:
            raise InvalidInput(
                f"'{file}' has no column '{column}' to use as {role}. {_having(present)}"
            )
    if name and name not in NAMES:
        raise NotFound("layout", name, NAMES)
    if name or not named:
        for layout in LAYOUTS:
            if name in ("", layout.name) and layout.required <= set(present):
                return replace(layout, columns={**_id(present), **layout.columns, **named})
        if name:
            needed = " or ".join(
                dict.fromkeys(
                    ", ".join(sorted(layout.required)) for layout in LAYOUTS if layout.name == name
                )
            )
            raise InvalidInput(
                f"'{file}' does not match the layout {name}, which has the columns {needed}. "
                f"{_having(present)}"
            )
    return _plain(file, present, named)


def _plain(file: str, present: Collection[str], named: Mapping[str, str]) -> Layout:
    """Build a layout for a table with pictures, captions and possibly foils, judging by common column names."""
    columns = {**_id(present), **named}
    for role, candidates in (("image", IMAGES), ("caption", CAPTIONS), ("foil", FOIL_COLUMNS)):
        column = next((column for column in candidates if column in present), "")
        if role not in columns and column and column not in columns.values():
            columns[role] = column
    if "caption" not in columns or "image" not in columns:
        raise InvalidInput(
            f"'{file}' does not match any layout. {_having(present)} Expected the columns of "
            f"{', '.join(NAMES)}, or one column for the pictures ({', '.join(IMAGES[:5])} ...) "
            f"and one for the captions ({', '.join(CAPTIONS[:4])} ...). To choose the columns, "
            f"write table:{file}@FOLDER+image=COLUMN+caption=COLUMN, where FOLDER contains the "
            "pictures, and add +foil=COLUMN if there are foils."
        )
    kind: Kind = "captions"
    if "foil" in columns:
        kind = "pair" if "image2" in columns else "triplet" if "caption2" in columns else "foils"
    return Layout("", kind, columns)


def _id(present: Collection[str]) -> dict[str, str]:
    name = next((name for name in IDS if name in present), "")
    return {"id": name} if name else {}


def _having(present: Collection[str]) -> str:
    return f"It has the columns {', '.join(sorted(present)) or 'none'}."
