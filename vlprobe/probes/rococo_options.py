"""The options of the probe `rococo`: their allowed combinations, and the ones that are part of a run's key."""

import re
from collections.abc import Mapping
from typing import Literal, NotRequired, TypedDict, cast

from vlprobe.errors import InvalidInput
from vlprobe.perturb import mix, substitution
from vlprobe.probes import edits_option, vocabulary_option
from vlprobe.probes.caption_foils import Draws
from vlprobe.types.options import Option

VOTED_POLICIES = (
    "delete:low-ei",
    "delete:high-ei",
)  # policies that make nothing without the encoders' vote


class RococoOptions(TypedDict):
    """The options as a run has them."""

    policies: list[str]
    pictures: list[str]
    picture_seeds: list[int]
    influence: list[str]
    normalise: bool
    caption_seeds: NotRequired[list[int]]
    vocabulary: NotRequired[str]
    edits: NotRequired[str]


OPTIONS = (
    Option(
        name="policies",
        default=("rand-voca", "same-concept", "diff-concept", "danger"),
        label="Altered captions",
        help="Which words are put in. NAME exchanges one noun of a caption, NAME:K as many as K, delete:WHICH "
        "leaves one out. None: no query for captions; with no altered pictures either: the clean gallery alone.",
        choices=(
            *substitution.POLICIES,
            *(f"delete:{which}" for which in substitution.DELETIONS),
        ),
        pattern=f"({'|'.join(substitution.POLICIES)}):0*[1-5]",
        expected=f"NAME, NAME:K (2 to 5 words) or delete:WHICH with a NAME of {', '.join(substitution.POLICIES)} "
        f"and a WHICH of {', '.join(substitution.DELETIONS)}",
    ),
    Option(
        name="pictures",
        default=("mix:0.9", "patch:0.9"),
        label="Altered pictures",
        help="mix:LAM blends a picture with another, patch:LAM pastes a part of it; LAM is the share that stays. "
        "None: no query for pictures.",
        choices=tuple(f"{kind}:{lam}" for lam in mix.LAMBDAS for kind in ("mix", "patch")),
        pattern=r"(mix|patch):0?\.[0-9]*[1-9][0-9]*",
        expected="mix:LAM or patch:LAM, 0 < LAM < 1",
    ),
    Option(
        name="picture_seeds",
        default=mix.SEEDS,
        label="Seeds of altered pictures",
        help="Partners and patches are drawn anew for each.",
        choices=mix.SEEDS,
        pattern="[0-9]+",
        expected="whole numbers, 0 or more",
        minimum=0,
    ),
    Option(
        name="caption_seeds",
        default=(),
        label="Seeds of altered captions",
        help="Words are drawn anew for each, and the numbers are means over them. None: one draw, by the run's seed.",
        choices=mix.SEEDS,
        pattern="[0-9]+",
        expected="whole numbers, 0 or more",
        minimum=0,
    ),
    vocabulary_option.OPTION,
    Option(
        name="influence",
        default=(),
        label="Encoders that vote on the word",
        help="Models that embed texts: the noun that most of them find least influential is exchanged. None: a "
        "noun at random.",
        pattern=".+",
        refers_to="model",
    ),
    Option(
        name="normalise",
        default=True,
        label="Even out released captions",
        help="Released files spell altered captions differently from originals: both are compared without case "
        "and marks.",
    ),
    edits_option.option("Those with a different meaning take the place of altered captions."),
)


def check(settings: RococoOptions) -> None:
    """A vote takes voters, an altered picture a seed, a vocabulary its policy; no edit has two names.
    Raises InvalidInput.
    """
    needing_votes = [policy for policy in settings["policies"] if policy in VOTED_POLICIES]
    if needing_votes and not settings["influence"]:
        raise InvalidInput(
            f"Policy '{needing_votes[0]}' needs EI scores: name encoders that vote on the word as the option "
            "'influence'."
        )
    if settings["pictures"] and not settings["picture_seeds"]:
        raise InvalidInput(
            "Altered pictures take a seed. Name one or more as the option 'picture_seeds'."
        )
    _refuse_synonyms("pictures", {name: strength(name) for name in settings["pictures"]})
    # Where policies name the number of words, 1 is what a policy without a number means.
    _refuse_synonyms(
        "policies",
        {policy: re.sub(r":0*1$|(?<=:)0+", "", policy) for policy in settings["policies"]},
    )
    vocabulary_option.check(settings.get("vocabulary", ""), settings["policies"])


def pinned(options: Mapping[str, object]) -> dict[str, object]:
    """The options with the vocabulary's digest, without unused ones: a run without it keeps its key. Raises
    InvalidInput where the vocabulary cannot be read.
    """
    left_out = [name for name in ("caption_seeds", "vocabulary") if not options.get(name)]
    asked_for = {name: value for name, value in options.items() if name not in left_out}
    return vocabulary_option.with_digest(asked_for) if "vocabulary" in asked_for else asked_for


def draws(settings: RococoOptions, seed: int) -> Draws:
    """Return the rules that decide on the words, from pinned options and the seed of a run."""
    return Draws(
        voters=tuple(settings["influence"]),
        seed=seed,
        caption_seeds=tuple(settings.get("caption_seeds", ())),
        words=vocabulary_option.loaded(settings),
    )


def strength(name: str) -> tuple[Literal["mix", "patch"], float]:
    """Kind and share that stays, of a strength as KIND:LAM; the option's pattern allows no other."""
    kind, lam = name.split(":")
    return cast(Literal["mix", "patch"], kind), float(lam)


def _refuse_synonyms(option: str, meanings: Mapping[str, object]) -> None:
    """Raise InvalidInput where two values of an option mean the same, so that it would be in
    the gallery twice.
    """
    for value, meaning in meanings.items():
        synonym = next(name for name, same in meanings.items() if same == meaning)
        if synonym != value:
            raise InvalidInput(
                f"Option '{option}' names one edit as '{synonym}' and as '{value}'. Name it once."
            )
