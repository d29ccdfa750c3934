"""The better models, in a sentence or two: from all pairs of models, corrected together.

A model is called the best, or the worst, only where it is clearly so beside every other one; a
control, a model that failed its checks or one that is as good as guessing is never the best; an unclear result is
called tied, or not clear.
"""

import math
from collections.abc import Collection, Mapping

from vlprobe.render.sentences import count_word, frequency, listed
from vlprobe.views.paired_tests import ModelShare, PairedTests


def best_and_worst(standings: PairedTests) -> tuple[str, str]:
    """The model that is clearly fooled least, and the one that is clearly fooled most; "" where
    there is none.
    """
    fit = standings.fit
    if len(fit) < 2:
        return "", ""
    best = [
        contestant.model
        for contestant in fit
        if contestant.may_win and _beside_all(standings, contestant, "fewer")
    ]
    worst = [contestant.model for contestant in fit if _beside_all(standings, contestant, "more")]
    return (best or [""])[0], (worst or [""])[0]


def _beside_all(standings: PairedTests, contestant: ModelShare, verdict: str) -> bool:
    rivals = [rival.model for rival in standings.fit if rival is not contestant]
    return all(standings.verdict(contestant.model, rival) == verdict for rival in rivals)


def ranking(standings: PairedTests, names: Mapping[str, str]) -> str:
    """Return the better models.

    Args:
        standings: PairedTests of all models.
        names: Name of each model.
    """
    fit = [contestant for contestant in standings.fit if not math.isnan(contestant.share)]
    if not fit:
        return _nobody(standings)
    if not standings.is_movement and not any(contestant.may_win for contestant in fit):
        subject = f"{names[fit[0].model]} does" if len(fit) == 1 else "They do"
        return f"{subject} no better than guessing."
    if len(fit) == 1:
        return f"{names[fit[0].model]} is the only model here."
    if len(fit) == 2:
        return _of_two(standings, names)
    best, worst = best_and_worst(standings)
    rest = [contestant.model for contestant in fit if contestant.model not in (best, worst)]
    sentences = []
    verb = "is moved" if standings.is_movement else "is fooled"
    if best:
        sentences.append(f"{names[best]} {verb} least.")
    if worst:
        sentences.append(f"{names[worst]} {verb} most.")
    return " ".join([*sentences, _of_rest(standings, rest, best, worst)]).strip()


def _nobody(standings: PairedTests) -> str:
    if all(contestant.is_control for contestant in standings.contestants):
        return "Only controls were asked: they are meant to fail."
    if any(contestant.is_fit for contestant in standings.contestants):
        return "Nothing is known of any model."
    return "No model here passed its checks, so none is called better."


def _of_two(standings: PairedTests, names: Mapping[str, str]) -> str:
    model, rival = (contestant.model for contestant in standings.fit)
    verdict = standings.verdict(model, rival)
    if verdict == "unknown":
        return f"Too little is known to tell {names[model]} and {names[rival]} apart."
    best, worst = best_and_worst(standings)
    verb = "moved less" if standings.is_movement else "fooled less often"
    if verdict == "tied" or not (best and worst):
        return f"{names[model]} and {names[rival]} are tied."
    return f"{names[best]} is {verb} than {names[worst]}."


def _of_rest(standings: PairedTests, rest: Collection[str], best: str, worst: str) -> str:
    """Return the result of the models that are neither the best nor the worst."""
    count = count_word(len(rest))
    if len(rest) < 2:
        return ""
    verdicts = {standings.verdict(model, base) for model in rest for base in rest if model < base}
    if verdicts == {"tied"}:
        if best and worst:
            return f"The {count} between are tied."
        return f"The other {count} are tied." if best or worst else f"All {count} are tied."
    if best and worst:
        return (
            f"Of the {count} between, not all can be told apart."
            if verdicts - {"fewer", "more"}
            else ""
        )
    if best:
        return "Who is fooled most is not clear." if not standings.is_movement else ""
    return "No model is clearly the best."


def leaders(standings: PairedTests, names: Mapping[str, str]) -> str:
    """Models that no other one is clearly better than, as a remark for a speaker; "" of fewer than
    three models, or where one is the best.
    """
    fit = standings.fit
    if len(fit) < 3 or best_and_worst(standings)[0]:
        return ""
    ahead = [
        contestant.model
        for contestant in fit
        if contestant.may_win
        and not any(standings.verdict(contestant.model, rival.model) == "more" for rival in fit)
    ]
    return f"Nobody is clearly better than {listed([names[model] for model in ahead])}." * bool(
        ahead
    )


def frequency_sentence(count: int, total: int, lies: str, happened: str) -> str:
    """Compute how often something happened, as a heading.

    >>> frequency_sentence(126, 1000, "lies", "believed"), frequency_sentence(61, 100, "lies", "believed")
    ('One lie in eight is believed.', '61 % of the lies are believed.')
    >>> frequency_sentence(0, 9, "near twins", "not told apart"), frequency_sentence(9, 9, "lies", "believed")
    ('None of the near twins is not told apart.', 'All of the lies are believed.')
    """
    how_many = frequency(count, total)
    if not how_many.startswith("1 in "):
        return f"{how_many} of the {lies} {'are' if count else 'is'} {happened}."
    number = how_many.removeprefix("1 in ")
    number = count_word(int(number)) if number.isdecimal() else number
    return f"One {lies.removesuffix('s')} in {number} is {happened}."
