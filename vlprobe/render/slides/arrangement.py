"""The order, selection, titles and notes that a user gave to the slides of a deck."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from vlprobe.errors import InvalidInput
from vlprobe.render.slides.values import Slide, SlidePicture

CASE, FIGURE, TEXT = ADDED = "case:", "figure:", "text:"  # prefixes of ids of added slides
TITLE = f"{TEXT}title"  # of a slide with only a title, as in slides.js
MOST_SLIDES, MOST_FIGURES = 240, 12
PICTURE = "data:image/webp;base64,"
MOST_TEXTS = 1000  # titles, and as many notes
LONGEST_TITLE, LONGEST_NOTE, LONGEST_KEY = 300, 4000, 1000
EXPECTED = (
    "This deck is not valid. Expected slide ids, titles and notes as the Present page sends them."
)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Changes to the default deck. Slides that it does not name keep their place and their text."""

    order: tuple[str, ...] = ()  # ids of slides
    included: Mapping[str, bool] = field(default_factory=dict)  # by slide id
    titles: Mapping[str, str] = field(default_factory=dict)  # by `Slide.text_key`
    notes: Mapping[str, str] = field(default_factory=dict)  # by `Slide.text_key`
    figures: Mapping[str, str] = field(default_factory=dict)  # data URLs of figures by slide id
    opening: str = ""  # id of the case that the deck opens with; "": the first candidate

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of the added cases."""
        return tuple(name.removeprefix(CASE) for name in self.order if name.startswith(CASE))

    def with_cases(self, case_ids: Sequence[str]) -> "Arrangement":
        """Return the arrangement with more cases, before the closing slide. Cases that it has keep their place.

        Raises InvalidInput if the deck is full.
        """
        order = _insert(self.order, [f"{CASE}{name}" for name in case_ids])
        return parse(asdict(replace(self, order=order)))

    def with_figure(self, name: str, source: str, title: str) -> "Arrangement":
        """Return the arrangement with one more figure, before the closing slide. Raises InvalidInput if it has too
        many.

        Args:
            name: Id of the slide, which begins with FIGURE.
            source: The figure as a data URL.
        """
        figures = dict(self.figures) | {name: source}
        if len(figures) > MOST_FIGURES:
            raise InvalidInput(
                f"The slides have {MOST_FIGURES} figures, which is the maximum. Remove one first."
            )
        titles = {name: title, **self.titles}
        order = _insert(self.order, [name])
        return parse(asdict(replace(self, order=order, titles=titles, figures=figures)))

    def own_slides(self) -> list[Slide]:
        """Return a slide for each figure, and for each text. `arrange` adds their titles and texts."""
        texts = [
            Slide(id=name, heading=(("Title", ""),), layout="cover")
            if name.startswith(TITLE)
            else Slide(id=name, heading=(("Title", ""),), detail="Text")
            for name in self.order
            if name.startswith(TEXT)
        ]
        return texts + [
            Slide(
                id=name,
                heading=(("Figure", ""),),
                layout="figure",
                pictures=(SlidePicture(name, self.titles.get(name) or "Figure"),),
            )
            for name in self.figures
        ]

    def with_unsent(
        self, before: "Arrangement", shown: Collection[str], known: Collection[str]
    ) -> "Arrangement":
        """Return the arrangement with what a browser does not send: the titles and notes of slides that it does not
        show, such as those about another case, slides that were added elsewhere, and the figures themselves.

        Args:
            before: The arrangement so far.
            shown: Keys of the slides that the browser shows.
            known: Ids of the slides that it had. It removed those that are not in its order.

        Raises:
            InvalidInput: The deck is full.
        """

        def merge(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
            others = {key: text for key, text in old.items() if key not in shown}
            return dict([*others.items(), *new.items()][-MOST_TEXTS:])

        titles, notes = merge(before.titles, self.titles), merge(before.notes, self.notes)
        added = [name for name in before.order if name.startswith(ADDED)]
        order = _insert(self.order, [name for name in added if name not in known])
        figures = {name: each for name, each in before.figures.items() if name in order}
        changes = {"order": order, "titles": titles, "notes": notes, "figures": figures}
        return parse(asdict(replace(self, **changes)))

    def text(self) -> str:
        """Return the arrangement as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)


def _insert(order: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of slides with more ids before the closing slide."""
    names = list(order)
    place = names.index("closing") if "closing" in names else len(names)
    names[place:place] = [name for name in added if name not in names]
    return tuple(names)


def parse(value: object) -> Arrangement:
    """Check an arrangement that a browser or a file supplied. Raises InvalidInput if it is not valid or too long."""
    if not isinstance(value, dict):
        raise InvalidInput(EXPECTED)
    order = value.get("order")
    if not isinstance(order, list | tuple) or not all(isinstance(name, str) for name in order):
        raise InvalidInput(EXPECTED)
    names = tuple(dict.fromkeys(order))
    if len(names) > MOST_SLIDES:
        raise InvalidInput(f"The deck has {len(names):,} slides. The maximum is {MOST_SLIDES}.")
    included = _checked(value.get("included"), bool)
    titles, notes, figures = (
        _checked(value.get(name, {}), str) for name in ("titles", "notes", "figures")
    )
    return Arrangement(
        names,
        {name: is_on for name, is_on in included.items() if name in names},
        {key: text[:LONGEST_TITLE] for key, text in titles.items()},
        {key: text[:LONGEST_NOTE] for key, text in notes.items()},
        {name: each for name, each in figures.items() if each.startswith(PICTURE)},
        str(value.get("opening", ""))[:LONGEST_KEY],
    )


def _checked(value: object, kind: type) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > MOST_TEXTS:
        raise InvalidInput(EXPECTED)
    return {
        name: each
        for name, each in value.items()
        if isinstance(name, str) and len(name) <= LONGEST_KEY and isinstance(each, kind)
    }


def arrange(slides: Sequence[Slide], arrangement: Arrangement) -> tuple[Slide, ...]:
    """Return the slides in the order of the arrangement, with its titles and notes. New slides come before the
    closing slide.

    The title of a slide with text has the text in its further lines.
    """
    order = arrangement.order
    if all(name.startswith(ADDED) for name in order):  # nobody has moved a slide yet
        default = [slide.id for slide in slides if not slide.id.startswith(ADDED)]
        order = _insert(default, order)  # a full deck may exceed the maximum by these
    order = _insert(order, [slide.id for slide in slides])
    ordered = sorted(slides, key=lambda slide: order.index(slide.id))

    def edited(slide: Slide, key: str) -> Slide:
        title, detail = arrangement.titles.get(key, "").strip(), slide.detail
        if title and slide.id.startswith(TEXT):
            title, _, detail = title.partition("\n")
        note = arrangement.notes.get(key)
        return replace(
            slide,
            heading=((title, ""),) if title else slide.heading,
            detail=detail,
            notes=slide.notes if note is None else tuple(note.splitlines()),
            is_extra=not arrangement.included.get(slide.id, not slide.is_extra),
            question=slide.question and edited(slide.question, slide.question_key),
        )

    return tuple(edited(slide, slide.text_key) for slide in ordered)
