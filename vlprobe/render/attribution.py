"""Whose pictures and whose answers are shown: the only place that writes credits and sources."""

from collections.abc import Mapping, Sequence

import htpy

from vlprobe.datasets.credits import picture_credit
from vlprobe.models.published import NOTE
from vlprobe.render.words import NOT_RENAMED, model_name
from vlprobe.views.records import RunRow

SECURE = "https://"  # other addresses are shown as text


def credit_values(name: str) -> dict[str, str] | None:
    """The credit of a picture as components draw it: page, license and its address; None without one.

    Args:
        name: The stored name of the picture.
    """
    credit = picture_credit(name)
    if credit is None:
        return None
    return {"page": credit.page, "license": credit.license, "licenseUrl": credit.license_url}


def credit_line(name: str) -> htpy.Element | None:
    """The credit of a picture as a line of HTML below it; None without one."""
    credit = picture_credit(name)
    if credit is None:
        return None
    return htpy.p(".vp-quiet.vp-small.vp-credit")[
        _link(credit.page, "Photo"), " · ", _link(credit.license_url, credit.license)
    ]


def published_line(
    runs: Sequence[RunRow], renamed: Mapping[str, str] = NOT_RENAMED
) -> htpy.Element | None:
    """Which answers were published by others, and where, as a line of HTML; None where all were
    computed here.
    """
    sources = _sources(runs)
    if not sources:
        return None
    every = len(sources) == 1 and all(run.publication for run in runs)
    parts: list[htpy.Node] = []
    for publication, models in sources.items():
        names = "" if every else f"{', '.join(model_name(model, renamed) for model in models)}: "
        parts += ["; " if parts else "", names, _link(publication[1], publication[0])]
    return htpy.p(".vp-quiet.vp-published")[f"{NOTE} · ", parts]


def published_text(runs: Sequence[RunRow], renamed: Mapping[str, str] = NOT_RENAMED) -> str:
    """The same as plain text with addresses; "" where all were computed here."""
    parts = [
        f"{', '.join(model_name(model, renamed) for model in models)}: {authors}, {source}"
        for (authors, source), models in _sources(runs).items()
    ]
    return f"{NOTE}. {'; '.join(parts)}." if parts else ""


def _sources(runs: Sequence[RunRow]) -> dict[tuple[str, str], list[str]]:
    """Models by the authors and the address of their answers."""
    sources: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        if run.publication:
            key = run.publication.authors, run.publication.source
            sources.setdefault(key, []).append(run.model)
    return sources


def _link(address: str, text: str) -> htpy.Node:
    if not address.startswith(SECURE):
        return text
    return htpy.a(href=address, target="_blank", rel="noopener noreferrer")[text]
