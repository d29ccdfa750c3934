"""Home on a site: failures, the rate at which each type of lie is believed, every model, links to the other pages."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from vlprobe import views
from vlprobe.case.card import case_card
from vlprobe.render import home
from vlprobe.render.sentences import counted
from vlprobe.surfaces.site.explore import types_of
from vlprobe.surfaces.site.subject import Subject, Values

FAILURES = 24  # at most
SEED = 196  # of the order of failures, as that of shipped ones in the dashboard


def page(name: str, **query: str) -> str:
    """The address of a page of the site; its subject follows the number sign."""
    return f"{name}.html#{urlencode(query, quote_via=quote)}"


def home_values(
    subject: Subject, kind_name: str, pages: Mapping[str, str]
) -> tuple[Values, list[int]]:
    """Failures of a kind, and the figures of it; and the numbers of the cases that it shows.

    Args:
        subject: The question set.
        kind_name: Kind name of the cases.
        pages: The other pages that the site has of this kind, by what they are called.
    """
    store, question_set = subject.store, subject.question_set
    kind = subject.presentation.kind(kind_name)
    headline = views.showcase.headline_models(store, question_set)
    credible = views.paired_tests.fit_models(store, question_set)
    model = headline[0]
    about = {"set": subject.key, "kind": kind_name}
    count = min(FAILURES, subject.limits.n_cases)
    showcases = views.showcase.showcases(store, question_set, kind_name, model, SEED, count)
    subject.shelf.add(
        shot.name for showcase in showcases for shot in case_card(showcase.card, kind).pictures
    )
    rated = {name: subject.names[name] for name in subject.rated}
    counts = views.showcase.lie_counts(store, question_set, kind_name)
    types = types_of(subject, kind_name)

    def address(key: str, query: Mapping[str, str]) -> str:
        choices = {**about, **query, "model": subject.keys[query.get("model", model)]}
        subtype = choices.pop("type", "")
        if subtype in types:
            choices["type"] = str(types.index(subtype))
        return page("explore", **choices)

    strip = home.strip(counts, rated, credible, kind, subject.model_looks, address)
    fooled = views.showcase.n_fooling_pictures(store, question_set, kind_name, model)
    behind = {
        "explore": f"{counted(fooled, 'picture')} that fool{'s' if fooled == 1 else ''} {rated[model]}"
        if not kind.is_movement
        else f"Every case of {rated[model]}",
        "compare": "Who is better, and on what",
        "tradeoff": "Invariance and sensitivity",
        "present": "The story in slides",
    }
    values: Values = {
        "hero": {
            "kicker": home.asked(subject.presentation, kind),
            "cases": [
                home.failure(
                    showcase,
                    kind,
                    model,
                    {name: subject.names[name] for name in headline},
                    credible,
                    subject.model_looks,
                    subject.shelf.key,
                    address("", {"case": subject.case_key(showcase.card.case)}),
                )
                | {"place": number, "id": subject.case_key(showcase.card.case)}
                for number, showcase in enumerate(showcases)
            ],
            "only": len(showcases) == 1,
        },
        "nothing": "Nothing moves here." if kind.is_movement else "No lie is believed here.",
        "figures": {
            "numbers": home.numbers(counts, model, rated[model], kind, address),
            "strip": strip | {"models": _models(strip)},
            "doors": [
                {
                    "key": f"door:{name}",
                    "href": page(name, **about),
                    "title": title,
                    "sentence": behind[name],
                }
                for name, title in pages.items()
                if name in behind
            ],
        },
    }
    return values, [showcase.card.case for showcase in showcases]


def _models(strip: Values) -> list[Values]:
    """The models of the strip without their stored names."""
    models = strip["models"]
    entries = models if isinstance(models, list) else []
    return [
        entry | {"stored": entry["name"], "key": f"model:{number}"}
        for number, entry in enumerate(entries)
    ]
