"""Results of the model checks, as sentences and as a table with one row per model."""

import html
from collections.abc import Callable, Collection, Sequence

from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import breakable, mark, table, tag
from vlprobe.render.sentences import capitalized, count_word
from vlprobe.views.fitness import ModelFitness, Warned

CHECKS = {  # column heading by the stored name of a check
    "preprocessing": "Pictures prepared as in training",
    "activation": "Activation as in training",
    "text_batch": "Caption: same result alone and in a batch",
    "image_batch": "Picture: same result alone and in a batch",
    "finite": "Finite numbers",
    "matched_auc": "Pairs above chance",
    "r1_forth": "Picture finds caption",
    "r1_back": "Caption finds picture",
}
SIGNS = {"passed": ("✓", "passed"), "failed": ("!", "failed"), "unjudged": ("-", "not judged")}
CSS = {"passed": "vp-held", "failed": "vp-tied", "unjudged": "vp-quiet"}


def check_name(name: str) -> str:
    """Return the display name for a model check.

    >>> check_name("r1_forth"), check_name("something_else")
    ('Picture finds caption', 'something else')
    """
    return CHECKS.get(name, name.replace("_", " "))


def fails(count: int, is_control: bool) -> str:
    """Say how many checks a model failed. For a control, add that it should fail.

    >>> fails(3, True), fails(1, False), fails(0, True)
    ('failed three checks, as it should', 'failed one check', 'passed all checks')
    """
    if not count:
        return "passed all checks"
    checks = f"failed {count_word(count)} {'check' if count == 1 else 'checks'}"
    return f"{checks}, as it should" if is_control else checks


def passes(judged: Collection[str]) -> str:
    """Return the verdict for a model that fails no check, given the names of the checks that apply.

    >>> passes(["finite", "r1_forth"]), passes(["finite"]), passes([])
    ('OK, 2 of 2', 'only its numbers could be checked', 'no check applies')
    """
    if list(judged) == ["finite"]:  # of published answers, which come without a model
        return "only its numbers could be checked"
    return f"OK, {len(judged)} of {len(judged)}" if judged else "no check applies"


def warning(warned: Warned, called: str) -> str:
    """Return a one-line warning about a model: whether it is a control, how many checks it failed, and its note.

    >>> warning(Warned("control:random", True, "", ("a", "b", "c")), "Coin flip")
    'Coin flip: a control, failed three checks, as it should.'
    >>> warning(Warned("m", False, "Its weights were never trained.", ("a",)), "M")
    'M: failed one check. Its weights were never trained.'
    >>> warning(Warned("m", False, "untrained: its scores mean nothing", ("a",)), "M")
    'M: failed one check. Untrained: its scores mean nothing.'
    """
    failed = fails(len(warned.failed), warned.is_control) if warned.failed else ""
    head = ", ".join(filter(None, ["a control" if warned.is_control else "", failed]))
    note = capitalized(warned.note) if head else warned.note
    sentences = [f"{head}." if head else "", note and f"{note.rstrip('.')}."]
    return f"{called}: {' '.join(filter(None, sentences))}"


def matrix(rows: Sequence[ModelFitness], looks: Looks, called: Callable[[str], str]) -> str:
    """Return an HTML table with one row per model: the verdict in words, and one column per check. Checks that were
    judged for no model come last.

    A passed check has a check mark, a failed check "!", and a check that was not judged "-".

    Args:
        looks: Symbols for the models. A model without an entry gets no symbol.
        called: Function that returns the display name for a model's stored name.
    """
    judged = {name for row in rows for name in row.judged}
    names = list(dict.fromkeys(name for row in rows for name in row.checks))
    names.sort(key=lambda name: name not in judged)
    head = "".join(tag("th", title, scope="col") for title in ("Model", "Verdict"))
    head += "".join(tag("th", check_name(name), scope="col", class_="vp-check") for name in names)
    return table(
        "Models by checks", head, [_row(row, names, looks, called(row.model)) for row in rows]
    )


def _row(row: ModelFitness, names: Sequence[str], looks: Looks, called: str) -> str:
    look = f"{mark(looks[row.model])} " if row.model in looks else ""
    first = f'<th scope="row" title="{html.escape(row.model)}">{look}{breakable(called)}</th>'
    cells = "".join(_cell(row, name) for name in names)
    is_failed = row.failed or row.is_control
    failed = fails(len(row.failed), row.is_control) if is_failed else passes(row.judged)
    return f'<tr class="first">{first}{tag("td", failed, class_="vp-metric")}{cells}</tr>'


def _cell(row: ModelFitness, name: str) -> str:
    check = row.checks.get(name)
    outcome = check.outcome if check else "unjudged"
    sign, word = SIGNS[outcome]
    css = "vp-quiet" if row.is_control else CSS[outcome]
    on = f", on {', '.join(check.failed_on)}" if check and check.failed_on else ""
    label = html.escape(f"{check_name(name)}: {word}{on}")
    return f'<td title="{label}" class="{css}"><strong aria-label="{label}" role="img">{sign}</strong></td>'
