"""The Home page and the Present page of a site.

Home shows failures, rates by type, every model and links. Present shows slides about one kind of case.
"""

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote, urlencode

from vlprobe import views
from vlprobe.case.card import case_card
from vlprobe.render import findings, home
from vlprobe.render.sentences import sentence_names
from vlprobe.render.slides import deck
from vlprobe.render.slides import values as slide_values
from vlprobe.storage import display_names
from vlprobe.surfaces.site.explore import keys_of_types
from vlprobe.surfaces.site.subject import Subject, Values
from vlprobe.views.story import story

FAILURES = 24  # maximum number of failures
SEED = 196  # for the order of failures, the same as for bundled results in the dashboard


def page(name: str, **query: str) -> str:
    """Return the address of a page in the site. The query follows a number sign."""
    return f"{name}.html#{urlencode(query, quote_via=quote)}"


def home_values(
    subject: Subject, kind_name: str, pages: Mapping[str, str]
) -> tuple[Values, list[int]]:
    """Return the failures and figures on the Home page for a kind of case, and the numbers of the cases that it shows.

    Args:
        pages: Titles of the pages that the site has for the kind, by page name.
    """
    question_set = subject.question_set
    kind = subject.presentation.kind(kind_name)
    headline = views.showcase.headline_models(question_set)
    credible = views.paired_tests.fit_models(question_set)
    model = headline[0]
    base_query = {"set": subject.key, "kind": kind_name}
    count = min(FAILURES, subject.limits.n_cases)
    showcases = views.showcase.showcases(question_set, kind_name, model, SEED, count)
    subject.shelf.add(
        shot.name for showcase in showcases for shot in case_card(showcase.card, kind).pictures
    )
    rated = {name: subject.names[name] for name in subject.rated}
    counts = views.showcase.lie_counts(question_set, kind_name)
    types = keys_of_types(subject, kind_name)

    def address(**query: str) -> str:
        choices = {**base_query, **query, "model": subject.keys[query.get("model", model)]}
        subtype = choices.pop("type", "")
        if subtype in types:
            choices["type"] = types[subtype]
        return page("explore", **choices)

    all_models = page("tradeoff" if "tradeoff" in pages else "explore", **base_query)
    strip = home.strip(counts, rated, credible, kind, subject.model_looks, address, all_models)
    # Without their stored names
    models = [entry | {"stored": entry["name"]} for entry in strip["models"]]
    fooled = views.showcase.n_fooling_pictures(question_set, kind_name, model)
    doors = home.doors(kind, rated[model], fooled)
    values: Values = {
        "hero": {
            "kicker": home.describe_question(subject.presentation, kind),
            "cases": [
                home.failure(
                    showcase,
                    kind,
                    model,
                    {name: subject.names[name] for name in headline},
                    credible,
                    subject.model_looks,
                    subject.shelf.key,
                    address(case=subject.case_key(showcase.card.case)),
                )
                | {"place": number, "id": subject.case_key(showcase.card.case)}
                for number, showcase in enumerate(showcases)
            ],
            "only": len(showcases) == 1,
        },
        "nothing": home.nothing(kind),
        "figures": {
            "numbers": home.numbers(counts, model, rated[model], kind, address),
            "strip": strip | {"models": models},
            "doors": [
                {
                    "href": page(name, **base_query),
                    "title": title,
                    "sentence": doors[name],
                }
                for name, title in pages.items()
                if name in doors
            ],
        },
    }
    return values, [showcase.card.case for showcase in showcases]


def present_values(subject: Subject, kind_name: str) -> Values:
    """Return the input for the component `slides`, with keys instead of pictures, and without other question sets."""
    talk_story = replace(story(subject.question_set, kind_name), mixture=None)
    renamed = {**display_names.read(subject.question_set.store), **subject.names}
    slides = deck.slides(talk_story, renamed)
    names = sentence_names(subject.models, subject.names)
    pictures = slide_values.picture_names(slides)
    subject.shelf.add(pictures)
    kind = subject.presentation.kind(kind_name)
    talk = slide_values.talk_values(
        slides,
        subject.model_looks,
        {name: subject.shelf.key(name) for name in pictures},
        names,
        findings.ranking(talk_story.standings, names),
        deck.describe_questions(talk_story, kind, renamed),
    )
    return talk | {"pictures": {name: {"source": key} for name, key in talk["pictures"].items()}}
