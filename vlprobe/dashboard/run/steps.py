"""The three steps of a run: models, tests and pictures."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import registry
from vlprobe.dashboard.run import fields
from vlprobe.dashboard.state import dataset_name, model_name, plain, quiet
from vlprobe.render import marks
from vlprobe.render.charts.styles import SHIPPED
from vlprobe.render.html.elements import tag
from vlprobe.render.sentences import count_word
from vlprobe.render.words import SHIPPED_MODELS, distinct, presentations

CARDS = tuple(name for name in SHIPPED_MODELS if name.startswith("demo:"))
DRAWN = "Made on this computer, for each question its own"
MOST_DATASETS = 10  # that are shown side by side
UNSPOKEN = re.compile(r"[\\`*_{}\[\]<>!|#~$:]+")  # signs of Markdown, which may load a picture
OWN_DATA = "coco:/path/to/folder"
MODELS_HELP = (
    "Any OpenCLIP model can be typed: `openclip:NAME/TAG`, or `openclip:NAME@CHECKPOINT` for a "
    "file; `hf:FOLDER` for one of Hugging Face; `scores:FILE` and `embeddings:FILE` for what was "
    "computed elsewhere (`vlprobe ask` writes the questions); `http:URL#MODEL` for one that a server "
    "answers for, where whoever started this page named it (`--api URL`)."
)


@contextmanager
def _step(title: str, key: str) -> Iterator[DeltaGenerator]:
    """A step: its title at the left, what can be chosen at the right. Gives the place of
    the line below the title.
    """
    st.html('<hr class="vp-line">')
    with st.container(key=f"step_{key}"):
        left, right = st.columns([2, 10], gap="medium")
        left.subheader(title, anchor=False)
        below = left.empty()
        with right:
            yield below


def _card(column: DeltaGenerator, key: str, title: str, text: str, default: bool = False) -> bool:
    """A card that is one check box. `text` is HTML.

    The check box has the plain title as its name for screen readers, and the card draws the title:
    Streamlit would read Markdown's signs aloud.
    """
    with column.container(border=True, key=f"card_{key}", height="stretch"):
        name = UNSPOKEN.sub(" ", title)
        draw = partial(st.checkbox, name, key=key, label_visibility="collapsed")
        is_chosen = fields.keep(key, default, draw)
        st.html(tag("strong", title, class_="vp-card-title") + text)
    return is_chosen


def models() -> tuple[str, ...]:
    """Draw the models to run: cards of the bundled models, and a field for any other."""
    with _step("1. Models", "who") as below:
        names = []
        grid = st.grid(3, gap="small", key="who_cards")
        for name in CARDS:
            text = (
                f'<p class="vp-quiet vp-small">{marks.html(SHIPPED[name])} '
                f"{_escaped(SHIPPED_MODELS[name][1])}</p>"
            )
            if _card(grid, f"run_model_{name}", model_name(name), text):
                names.append(name)
        draw = partial(
            st.multiselect,
            "Your model (path or name)",
            fields.names("models"),
            key="run_models",
            accept_new_options=True,
            placeholder="Choose, or type a name and press Enter",
            help=MODELS_HELP,
        )
        others = fields.keep("run_models", [], draw)
        typed = [name.strip() for name in others]
        every = tuple(dict.fromkeys([*names, *typed]))
        _say(below, f"{len(every)} model{'' if len(every) == 1 else 's'}")
        return every


def probes() -> tuple[str, ...]:
    """Draw the tests to run: a card for each probe."""
    with _step("2. Tests", "what") as below:
        every = presentations()
        grid = st.grid(len(every), min_column_width=150, gap="small", key="what_cards")
        names = tuple(
            [
                name
                for name, probe in every.items()
                if _card(
                    grid,
                    f"run_probe_{name}",
                    probe.name,
                    tag("p", probe.asks, class_="vp-quiet vp-small"),
                    default=name == next(iter(every)),
                )
            ]
        )
        st.button(
            f"All {count_word(len(every))}",
            icon=":material/done_all:",
            key="all_probes",
            on_click=_choose_all,
            args=(tuple(every),),
        )
        _say(below, f"{len(names)} of {len(every)} questions")
        return names


def _choose_all(names: Sequence[str]) -> None:
    for name in names:
        st.session_state[f"run_probe_{name}"] = True


def dataset(chosen_probes: Sequence[str]) -> str:
    """About which pictures: "" for the drawn ones that go with each probe,
    else the name of a dataset.
    """
    with _step("3. Pictures", "which") as below:
        drawn = {registry.load_probe(name).dataset for name in chosen_probes}
        drawn_for_others = {registry.load_probe(name).dataset for name in registry.names("probes")}
        made_for = min(drawn) if len(drawn) == 1 else "demo"
        hidden = drawn if len(chosen_probes) == 1 else drawn_for_others
        options = ["", *(name for name in fields.names("datasets") if name not in hidden)]
        labels = distinct({name: dataset_name(name or made_for) for name in options})
        picked = _pick_pictures(options, labels)
        forms = ", ".join(
            f"`{name}`" for name in registry.names("datasets") if registry.is_form(name)
        )
        draw = partial(
            st.text_input,
            "Your pictures (folder or file)",
            key="run_own",
            placeholder=OWN_DATA,
            help=f"Takes the place of the dataset. With the path of your file or folder: {forms}.",
        )
        typed = fields.keep("run_own", "", draw).strip()
        name = typed or picked or ""
        _say(below, dataset_name(name or made_for))
        return name


def _pick_pictures(options: Sequence[str], labels: Mapping[str, str]) -> str | None:
    """All side by side with their stored names; many as a list to search in."""
    label, key = "Pictures and captions", "run_dataset"
    if len(options) > MOST_DATASETS:
        draw = partial(
            st.selectbox,
            label,
            options,
            key=key,
            format_func=lambda name: f"{labels[name]} · {name}" if name else labels[name],
        )
    else:
        draw = partial(
            st.radio,
            label,
            options,
            key=key,
            format_func=lambda name: plain(labels[name]),
            captions=[plain(name) or DRAWN for name in options],
        )
    return fields.keep(key, "", draw, options)


def options(chosen_probes: Sequence[str]) -> dict[str, dict[str, object]]:
    """Draw the options of each chosen probe, folded; return the typed values, by probe and option."""
    typed = {}
    for name in chosen_probes:
        described = registry.load_probe(name).options
        if described:
            label = f"Options for {plain(presentations()[name].name)}"
            lists = [option for option in described if option.type in fields.WIDE]
            others = [option for option in described if option not in lists]
            typed[name] = fields.draw_fold(f"how_{name}", label, [lists, others], f"run_{name}")
        else:
            typed[name] = {}
    return typed


def _say(slot: DeltaGenerator, text: str) -> None:
    with slot.container():
        quiet(text)


def _escaped(text: str) -> str:
    """Only the text, as HTML."""
    return tag("span", text)
