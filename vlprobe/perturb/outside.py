"""Validate and limit the caption edits that plug-ins make."""

from collections import Counter
from collections.abc import Iterable, Sequence

from vlprobe.errors import InvalidInput
from vlprobe.perturb.draws import draw
from vlprobe.perturb.lgip import KINDS, CaptionEdits, capped
from vlprobe.types import Edit


def kept(
    captions: Sequence[str],
    item_id: str,
    edits: Sequence[Sequence[tuple[str, Edit]]],
    maker: str,
    *,
    seed: int,
    kinds: Iterable[str] = KINDS,
    k_same: int = 6,
    k_diff: int = 6,
) -> CaptionEdits:
    """Select the edits with the requested kinds, without duplicate texts and copies of the caption.

    If a limit is exceeded, the edits are drawn at random. The draw depends only on (seed, item id, caption index,
    kind).

    Args:
        captions: Captions of one image.
        item_id: Id of the image.
        edits: For each caption, pairs of an edited text and its edit.
        maker: Name of the plug-in's rules, for errors.
        seed: Seed for the draws.
        kinds: Which of the kinds paraphrase, flip and combined to keep.
        k_same: Maximum number of paraphrases per caption.
        k_diff: Maximum number of flips per caption, and of combined edits per caption.

    Raises:
        InvalidInput: the edits do not have the expected form.
    """
    if len(edits) != len(captions):
        raise InvalidInput(
            f"{maker} returned edits for {len(edits)} captions of item '{item_id}', which "
            f"has {len(captions)}. Expected one list per caption."
        )
    dropped: Counter[str] = Counter()
    kinds_to_keep, out = frozenset(kinds), []
    for index, (caption, of_caption) in enumerate(zip(captions, edits, strict=True)):
        by_text: dict[str, Edit] = {}
        for entry in of_caption:
            text, edit = _checked(entry, item_id, maker)
            if text != caption and edit.kind in kinds_to_keep:
                by_text.setdefault(text, edit)
        kept_edits: list[tuple[str, Edit]] = []
        for kind in KINDS:
            pool = [(text, edit) for text, edit in by_text.items() if edit.kind == kind]
            cap = k_same if kind == "paraphrase" else k_diff
            kept_edits += capped(
                pool, cap, draw(seed, item_id, index, f"outside:{kind}"), dropped, kind
            )
        out.append(tuple(kept_edits))
    return CaptionEdits(tuple(out), dict(dropped))


def _checked(entry: object, item_id: str, maker: str) -> tuple[str, Edit]:
    match entry:
        case (str(text), Edit() as edit) if text.strip() and edit.kind in KINDS:
            if bool(edit.via) == (edit.kind == "combined"):
                return text, edit
    raise InvalidInput(
        f"{maker} returned an invalid edit for item '{item_id}': {repr(entry)[:200]}. Expected "
        f"a text and an Edit. The kind of the Edit must be one of {', '.join(KINDS)}, and only "
        "a combined Edit must have `via`, its paraphrase."
    )
