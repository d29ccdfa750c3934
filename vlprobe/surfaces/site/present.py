"""Present on a site: the story of a kind as slides, small on the page and over the whole window."""

from dataclasses import replace

from vlprobe.render import findings
from vlprobe.render.sentences import sentence_names
from vlprobe.render.slides import deck, values
from vlprobe.storage import display_names
from vlprobe.surfaces.site.subject import Subject, Values
from vlprobe.views.story import story


def present_values(subject: Subject, kind_name: str) -> Values:
    """Return the input of the component, pictures by their keys; without other question sets."""
    talk_story = replace(story(subject.store, subject.question_set, kind_name), mixture=None)
    renamed = {**display_names.read(subject.store), **subject.names}
    slides = deck.slides(talk_story, renamed)
    names = sentence_names(subject.models, subject.names)
    pictures = values.picture_names(slides)
    subject.shelf.add(pictures)
    kind = subject.presentation.kind(kind_name)
    talk = values.talk_values(
        slides,
        subject.model_looks,
        {name: subject.shelf.key(name) for name in pictures},
        names,
        findings.ranking(talk_story.standings, names),
        deck.asked(talk_story, kind, renamed),
    )
    keys = talk["pictures"]
    sources = keys.items() if isinstance(keys, dict) else ()
    return talk | {"pictures": {name: {"source": key} for name, key in sources}}
