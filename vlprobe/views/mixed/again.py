"""What stands first in both galleries of a run that did not store it: ranked again from the
embeddings that it kept.
"""

import numpy as np

from vlprobe.probes.rococo_galleries import PictureGalleries, changed_items, item_numbers
from vlprobe.scoring.kept import KeptEncoder, NotKept
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store
from vlprobe.types import Model, Picture
from vlprobe.views.mixed.case import Fronts, MixedCase, fronts_from, item_pictures
from vlprobe.views.runs import QuestionSet

_kept_galleries = SingleFlightCache(4)  # by model and question set


def fronts_again(
    store: Store, question_set: QuestionSet, case: MixedCase, model: Model
) -> Fronts | None:
    """The galleries' first candidates, ranked by a loaded model; None where it did not keep what
    that takes.

    Args:
        store: Where results and embeddings are.
        question_set: The models and their runs.
        case: The search.
        model: The one that answered, loaded.
    """
    if question_set.run(model.name).model_digest != model.digest or model.capabilities.scores_pairs:
        return None
    known = item_pictures(store, question_set)
    pictures = {item: Picture.from_name(picture.name) for item, picture in known.items()}
    if len(pictures) != store.cases(question_set.key).manifest()["n_items"]:
        return None  # an item without a case is not known here, and may be in the gallery
    numbers = item_numbers(pictures)

    def open_galleries() -> PictureGalleries:
        entry = store.cases(question_set.key)
        changed = changed_items(lambda columns: entry.blocks("cases", columns), numbers)
        encoder = KeptEncoder(model, store.root / "embeddings")
        return PictureGalleries(encoder, pictures, changed)

    try:
        key = store.address, question_set.key, model.digest
        galleries = _kept_galleries.get(key, open_galleries)
        items = np.array([numbers[case.item]])
        search = galleries.search([case.caption], items, case.rule)
    except NotKept:
        return None
    (row,) = search.fronts.to_pylist()
    return fronts_from(row, known, case.rule)
