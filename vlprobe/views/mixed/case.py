"""Details of one picture search: the picture that is mixed into the right one, and the top candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.perturb import mix
from vlprobe.probes import rococo_galleries
from vlprobe.probes.rococo import parse_strength
from vlprobe.storage.store import Store
from vlprobe.types import Picture, PictureEdit
from vlprobe.views import rows as views_rows
from vlprobe.views.mixed.searches import KIND, outcomes, strengths
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tables import CaseTable, TableFile, remembered

SHOWN = 5  # number of candidates shown per gallery


@dataclass(frozen=True, slots=True)
class Candidate:
    """A picture, original or mixed, in the gallery that a model ranks."""

    item: str
    picture: str  # name of the unmixed picture; "" if no case names it
    caption: str  # "" if `picture` is ""
    partner: str  # item whose picture is mixed in; "" for an unmixed picture
    partner_picture: str  # name of that item's picture; "" if there is none
    mixture: str  # name of the mixed picture; "" in the same cases
    score: float

    @property
    def is_mixture(self) -> bool:
        """Return whether another picture is mixed into this one."""
        return bool(self.partner)


@dataclass(frozen=True, slots=True)
class Fronts:
    """One model's top candidates, best first, in the galleries without and with mixtures; at most SHOWN + 1 each."""

    clean: tuple[Candidate, ...]
    with_mixtures: tuple[Candidate, ...]
    own_score: float  # score of the mixture of the right picture
    own_rank: int  # rank of the same mixture among all candidates; 0: unknown


@dataclass(frozen=True, slots=True)
class ModelRanks:
    """The ranks that one model gives the right picture; 0 if it is not among the stored candidates."""

    model: str
    clean: int
    with_mixtures: int
    score: float  # score of the right picture


@dataclass(frozen=True, slots=True)
class MixedCase:
    """A picture search, with the right picture and the picture that is mixed into it."""

    case: int  # case number
    id: str
    item: str
    caption: str
    subtype: str  # KIND:LAM
    rule: str
    edit: PictureEdit | None  # edit that made the mixture; None if the partner is unknown
    right: str  # name of the right picture
    partner: str  # name of the picture that is mixed in; "" if it is unknown
    mixture: str  # name of the mixture; "" in the same case
    partner_item: str
    partner_caption: str
    n_pictures: int  # number of pictures in the clean gallery
    n_mixtures: int  # number of mixtures hidden among them
    ranks: tuple[ModelRanks, ...]  # in `QuestionSet.ordered_models`
    is_lost_to_own: bool  # for the requested model
    fronts: Fronts | None  # for the same model; None if its run is older than this column

    @property
    def share(self) -> int:
        """Percentage of the right picture that remains in the run's mixture."""
        return round(100 * parse_strength(self.subtype)[1])

    def ranks_of(self, model: str) -> ModelRanks:
        """Return the right picture's ranks for the given model."""
        return next(ranks for ranks in self.ranks if ranks.model == model)


class ItemPicture(NamedTuple):
    """An item's picture and first caption."""

    name: str
    caption: str  # caption of the first case of the item


NO_PICTURE = ItemPicture("", "")
NO_CANDIDATE = Candidate("", "", "", "", "", "", float("nan"))


@dataclass(frozen=True, slots=True)
class _Gallery:
    """All pictures in a question set, by item."""

    pictures: dict[str, ItemPicture]  # by item, in item order
    n_mixtures: dict[str, int]  # by rule
    is_complete: bool  # whether every item has a case, so that no pictures are missing


def mixed_case(question_set: QuestionSet, case: int, model: str) -> MixedCase:
    """Return a picture search with its mixture, every model's ranks, and the top candidates for one model.

    Raises InvalidInput if the case is not a search for a picture.
    """
    row = views_rows.questions(question_set, [case]).iloc[0]
    if row["kind"] != KIND:
        raise InvalidInput(f"Case '{row['id']}' is not a search for a picture. Open it in Explore.")
    gallery = _gallery(question_set.cases)
    answers = views_rows.answers(question_set, [case]).set_index("model")
    front = _front_row(question_set.store, question_set.run(model).key, case)
    item, right = str(row["item"]), str(row["images"][0])
    partner_item = "" if front is None else str(front["partner"])
    if front is None and gallery.is_complete:  # an older run, so the partner is drawn again
        partner_item = mix.partners(list(gallery.pictures), _seed(str(row["rule"])))[item]
    partner, partner_caption = gallery.pictures.get(partner_item, NO_PICTURE)
    edit = _edit(str(row["rule"]), item, partner) if partner else None
    of_model = outcomes(question_set, model)
    return MixedCase(
        case=case,
        id=str(row["id"]),
        item=item,
        caption=str(row["texts"][0]),
        subtype=str(row["subtype"]),
        rule=str(row["rule"]),
        edit=edit,
        right=right,
        partner=partner,
        mixture=Picture(Picture.from_name(right).path, edit).name if edit else "",
        partner_item=partner_item,
        partner_caption=partner_caption,
        n_pictures=len(gallery.pictures),
        n_mixtures=gallery.n_mixtures.get(str(row["rule"]), 0),
        ranks=tuple(
            ModelRanks(
                name,
                _rank(answers.loc[name, "rank_clean"]),
                _rank(answers.loc[name, "rank"]),
                float(answers.loc[name, "scores"][0]),
            )
            for name in question_set.ordered_models
        ),
        is_lost_to_own=bool(of_model.is_own[np.searchsorted(of_model.numbers, case)]),
        fronts=(
            fronts_from(front, gallery.pictures, str(row["rule"])) if front is not None else None
        ),
    )


def _rank(value: float) -> int:
    """Convert a stored rank to int. Unknown ranks become 0."""
    return 0 if np.isnan(value) else int(value)


def _front_row(store: Store, run_key: str, case: int) -> Mapping[str, Any] | None:
    """Return the stored top candidates for a search, or None if the run stores none."""
    if not store.run(run_key).has_table(rococo_galleries.TABLE):
        return None
    table = TableFile(store, run_key, rococo_galleries.TABLE).rows([case], excluded=("run",))
    (row,) = table.to_dict("records") or [{"whole_items": None}]
    return None if row["whole_items"] is None else row


def first_candidates(
    question_set: QuestionSet, model: str, numbers: Sequence[int]
) -> list[Candidate]:
    """Return the picture, original or mixed, that a model ranks first in each of the given picture searches.

    A mixture that ranks first is known from the scores. An original picture that ranks first is known only if the run
    stored its top candidates; otherwise, the result is NO_CANDIDATE.
    """
    key = question_set.run(model).key
    pictures = _gallery(question_set.cases).pictures
    items = {picture.name: item for item, picture in pictures.items()}
    rules = views_rows.questions(question_set, numbers)["rule"]
    answers = views_rows.answers(question_set, numbers, (model,)).set_index("case")
    first = []
    for number, rule in zip(numbers, rules, strict=True):
        answer = answers.loc[number]
        if answer["top_altered"] == 1:
            mixture = Picture.from_name(str(answer["top"]))
            names = [str(mixture.path), str(mixture.edit.partner) if mixture.edit else ""]
            item, partner = (items.get(name, Path(name).stem) for name in names)
            score = float(answer["scores"][1])
            first.append(Candidate(item, names[0], "", partner, names[1], mixture.name, score))
        else:
            row = _front_row(question_set.store, key, number)
            first.append(fronts_from(row, pictures, rule).with_mixtures[0] if row else NO_CANDIDATE)
    return first


def fronts_from(row: Mapping[str, Any], pictures: Mapping[str, ItemPicture], rule: str) -> Fronts:
    """Convert a row of `rococo_fronts.SCHEMA` to the top candidates in both galleries.

    Args:
        rule: The rule that made the mixtures, in the form KIND:LAM:seedN.
    """

    def candidate(item: str, partner: str, score: float) -> Candidate:
        name, caption = pictures.get(item, NO_PICTURE)
        partner_name = pictures.get(partner, NO_PICTURE).name
        mixture = ""
        if name and partner_name:
            edit = _edit(rule, item, partner_name)
            mixture = Picture(Picture.from_name(name).path, edit).name
        return Candidate(item, name, caption, partner, partner_name, mixture, float(score))

    clean = zip(row["clean_items"], row["clean_scores"], strict=True)
    with_mixtures = zip(row["whole_items"], row["whole_partners"], row["whole_scores"], strict=True)
    own_altered = row["own_altered"]
    return Fronts(
        clean=tuple(candidate(item, "", score) for item, score in clean),
        with_mixtures=tuple(
            candidate(item, partner, score) for item, partner, score in with_mixtures
        ),
        own_score=float("nan" if own_altered is None else own_altered),
        own_rank=_rank(
            float("nan" if row["own_altered_rank"] is None else row["own_altered_rank"])
        ),
    )


def _seed(rule: str) -> int:
    return int(rule.rpartition(":seed")[2])


def _edit(rule: str, item: str, partner: str) -> PictureEdit:
    kind, lam = parse_strength(rule.rpartition(":seed")[0])
    return mix.picture_edit(item, Picture.from_name(partner).path, kind, lam, _seed(rule))


def item_pictures(question_set: QuestionSet) -> dict[str, ItemPicture]:
    """Return the picture for each item that has a case, in item order."""
    return _gallery(question_set.cases).pictures


@remembered
def _gallery(table: CaseTable) -> _Gallery:
    pictures = table.store.fetch_rows(
        "SELECT item, arg_min(images[1], case_order), arg_min(texts[1], case_order) FROM "
        "(SELECT *, (kind <> ?, file_row_number) AS case_order "
        "FROM read_parquet(?, file_row_number = true)) GROUP BY item ORDER BY min(item_code)",
        [KIND, [table.path]],
    )
    rules = table.store.fetch_rows(
        "SELECT rule, count(DISTINCT item) FROM read_parquet(?) WHERE kind = ? GROUP BY rule",
        [[table.path], KIND],
    )
    n_items = table.store.cases(table.key).manifest()["n_items"]
    of_items = {item: ItemPicture(name, caption) for item, name, caption in pictures}
    return _Gallery(of_items, dict(rules), len(pictures) == n_items)


def stored_wins(
    question_set: QuestionSet, case: MixedCase, models: Sequence[str]
) -> dict[str, dict[int, bool]]:
    """Return whether the right picture scores higher than its own mixture at each mixing share that
    was evaluated.

    Args:
        case: The search. Results for other strengths of the same kind of mixture and the same
            random draw are included.

    Returns:
        For each model, the results by the percentage of the right picture in the mixture.
        Percentages without a stored result are omitted.
    """
    kind, _ = parse_strength(case.subtype)
    stem = case.id.removesuffix(case.rule)
    rules = {
        f"{stem}{subtype}:seed{_seed(case.rule)}": round(100 * parse_strength(subtype)[1])
        for subtype in strengths(question_set)
        if parse_strength(subtype)[0] == kind
    }
    condition = f"id IN ({', '.join('?' * len(rules))})"
    numbers = question_set.cases.numbers(condition, list(rules)).tolist()
    ids = views_rows.questions(question_set, numbers)["id"].tolist()
    shares = {number: rules[case_id] for number, case_id in zip(numbers, ids, strict=True)}
    answers = views_rows.answers(question_set, numbers, models).set_index(["model", "case"])
    wins: dict[str, dict[int, bool]] = {model: {} for model in models}
    for model in models:
        run_key = question_set.run(model).key
        of_model = outcomes(question_set, model)
        for number, share in shares.items():
            answer, front = (
                answers.loc[(model, number)],
                _front_row(question_set.store, run_key, number),
            )
            own_altered = None if front is None else front["own_altered"]
            if own_altered is not None and not np.isnan(own_altered):
                wins[model][share] = bool(answer["scores"][0] > own_altered)
            elif float(answer["margin"]) > 0:  # higher than every mixture
                wins[model][share] = True
            elif of_model.is_own[np.searchsorted(of_model.numbers, number)]:
                wins[model][share] = False
    return wins
