"""The functions of `import vlprobe`.

Names passed to these functions are trusted like names typed by a person: if a name belongs to a plug-in, the plug-in is
imported.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import pandas as pd

from vlprobe import registry
from vlprobe.datasets.languages import foreign_captions
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.perturb import lgip
from vlprobe.perturb.language import NOT_IN_ENGLISH
from vlprobe.render.model_lookup import find_model, find_run
from vlprobe.runs import pair_scores, ray_cluster
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage import store as stores
from vlprobe.storage.store import Store
from vlprobe.surfaces.notebook.objects import (
    Compared,
    EditedCaption,
    Edits,
    Failures,
    LoadedData,
    LoadedModel,
    Results,
)
from vlprobe.types import Dataset, Model
from vlprobe.views import runs as views_runs
from vlprobe.views.runs import QuestionSet

Cache = str | Path | None  # a folder or a URL; None: VLPROBE_CACHE, or the folder `cache`


class _ProgressCallback(Progress):
    """Passes progress reports on to a function."""

    def __init__(self, callback: Callable[[str, float, float], object]) -> None:
        self.callback = callback

    def update(self, label: str, done: float, total: float) -> None:
        """Report that `done` of `total` are finished in the stage with this label."""
        self.callback(label, done, total)

    def tell(self, line: str) -> None:
        """Report a line of text, such as the cost of a run."""
        self.callback(line, 0, 1)


def edits(
    captions: str | Sequence[str],
    *,
    rules: str = "strict",
    kinds: Iterable[str] = lgip.KINDS,
    k_same: int = 6,
    k_diff: int = 6,
    seed: int = 42,
    item: str = "",
) -> Edits:
    """Create rewordings and wrong captions for one picture from its captions.

    Args:
        captions: One caption, or all captions of the picture. A wrong caption (flip) that would be true according to
            another caption is left out.
        rules: "strict", "paper", or the name of rules from a plug-in.
        kinds: Kinds of edits to create: "paraphrase", "flip" and "combined". vlprobe's own rules also support
            "negation", "relation", "attribute-swap", "word-order", "case", "punctuation" and "typo".
        k_same: Maximum number of rewordings per caption.
        k_diff: Maximum number of flips per caption.
        seed: Random seed, which is combined with `item`.
        item: Id of the picture.

    Raises:
        InvalidInput: No caption is in English, and the rules are vlprobe's own. Captions in eight other languages have
            flips of colors and numbers. If only some captions cannot be edited for their language, a warning says how
            many there are.
    """
    every = (captions,) if isinstance(captions, str) else tuple(captions)
    registry.allow_typed(rules)
    limits: dict[str, Any] = {"kinds": tuple(kinds), "k_same": k_same, "k_diff": k_diff}
    if rules in lgip.RULES:
        foreign = foreign_captions(every, None)
        caption_edits = lgip.edits(every, item, rules=rules, seed=seed, foreign=foreign, **limits)
        _report_foreign(every, caption_edits)
    else:
        caption_edits = registry.load_rules(rules).edits(every, item, seed, **limits)
    entries = [
        EditedCaption(caption, text, edit)
        for caption, of_caption in zip(every, caption_edits.edits, strict=True)
        for text, edit in of_caption
    ]
    return Edits(every, tuple(entries))


def _report_foreign(captions: Sequence[str], caption_edits: lgip.CaptionEdits) -> None:
    """Warn about captions in other languages without an edit. Raises InvalidInput if all captions are such captions."""
    reasons = NOT_IN_ENGLISH, lgip.NO_FLIP_BY_TABLE
    if not (count := sum(caption_edits.dropped.get(reason, 0) for reason in reasons)):
        return
    counted = f"{count:,} of {len(captions):,} captions are not in English"
    if count == len(captions):
        raise InvalidInput(
            f"{counted}, and the rules have no edit for them. Pass English captions or your "
            "own edits (docs/edits.md)."
        )
    warnings.warn(f"{counted} and stay unedited.", stacklevel=3)


def load_model(
    name: str, device: str = "auto", precision: Literal["fp32", "fp16", "bf16"] = "fp32"
) -> LoadedModel:
    """Load a model by its name, as on the command line. Raises NotFound or InvalidInput."""
    registry.allow_typed(name)
    return LoadedModel(registry.load_model(name, device, precision))


def load_dataset(name: str, cache: Cache = None) -> LoadedData:
    """Load a dataset by its name, as on the command line, and check it. Raises NotFound or InvalidInput."""
    registry.allow_typed(name)
    root = Store(cache or stores.DEFAULT).root
    dataset = registry.load_dataset(name, root)
    notes = tuple(getattr(dataset, "notes", ()))
    return LoadedData(dataset.name, dataset.digest, tuple(dataset.items), notes, root)


def run(
    models: str | Model | LoadedModel | Sequence[str | Model | LoadedModel],
    dataset: str | Dataset | LoadedData = "",
    probe: str = "lgip",
    *,
    options: Mapping[str, object] | None = None,
    cache: Cache = None,
    progress: Callable[[str, float, float], object] | None = None,
    ray_address: str = "",
    **settings: Any,
) -> Results:
    """Run a probe on one or more models. Repeating the call resumes an interrupted run, or returns the stored results.

    Args:
        models: One or more model names, or objects that implement the protocol `vlprobe.types.Model`.
        dataset: A dataset name, or the result of `load_dataset`. "" selects the probe's demo data.
        probe: "lgip", "rococo", "eqben", "visla", "prsm", or the name of a probe from a plug-in.
        options: Options of the probe, by name.
        cache: Folder or URL of the results.
        progress: Function that is called with a label, the amount done, and the total amount. It may raise an exception
            to stop the run.
        ray_address: HOST:PORT of the Ray cluster for `executor="ray"`. "" means RAY_ADDRESS, if set, or else a new
            cluster on this machine.
        settings: `seed`, `limit`, `item`, `where`, `sample`, `device`, `precision`, `batch_size`, `workers`, `memory`,
            `keep_embeddings`, `examine`, `executor`: see `vlprobe run --help`.

    Raises:
        VlprobeError: The run failed. The message is one line, and finished work is kept.
    """
    several = [models] if isinstance(models, str) or hasattr(models, "digest") else models
    names, loaded = [], {}
    for model in several:  # type: ignore[union-attr] - one model was made a list above
        if not isinstance(model, str):
            loaded[model.name] = model.model if isinstance(model, LoadedModel) else model
        names.append(model if isinstance(model, str) else model.name)
    if not names:
        raise InvalidInput("No model given. Pass one or more model names.")
    options = dict(options or {})
    dataset_name = dataset if isinstance(dataset, str) else dataset.name
    typed = [*(name for name in names if name not in loaded), dataset_name, probe]
    typed += [value for value in options.values() if isinstance(value, str)]
    registry.allow_typed(*filter(None, typed))
    try:
        request = Request(tuple(names), dataset_name, probe, options, **settings)
    except TypeError:
        unknown = sorted(set(settings) - set(Request.__dataclass_fields__))
        raise NotFound("setting of a run", str(unknown[0]), Request.__dataclass_fields__) from None
    if request.executor == "ray":
        ray_cluster.allow(ray_address)
    elif ray_address:
        raise InvalidInput("ray_address needs executor='ray'.")
    store = Store(cache or stores.DEFAULT)
    manifests = execute(
        request,
        store,
        _ProgressCallback(progress) if progress else None,
        models=loaded,
        dataset=None if isinstance(dataset, str) else cast(Dataset, dataset),
    )
    keys = {manifest["key"] for manifest in manifests}
    rows = tuple(row for row in views_runs.run_rows(store) if row.key in keys)
    return Results(store, QuestionSet(rows[0].case_key, rows[0].probe, rows, store))


def score(
    table: pd.DataFrame,
    model: str | Model | LoadedModel,
    *,
    image: str = "image",
    caption: str = "caption",
    folder: str | Path = ".",
    column: str = "score",
    cache: Cache = None,
) -> pd.DataFrame:
    """Add a column to a table that says how well the picture and the caption in each row match according to a model.
    The table itself is not changed.

    Args:
        table: A table with one row per pair of a picture and a caption.
        model: A model name or object. The model must be able to compare pictures with texts.
        image: Name of the column with the paths to the pictures.
        caption: Name of the column with the captions.
        folder: Folder that relative paths start from.
        column: Name of the new column, float32.
        cache: Folder or URL where answers from servers are stored.

    Raises:
        VlprobeError: A column or a picture is missing, or the model takes no pictures. The message is one line.
    """
    if column in table:
        raise InvalidInput(
            f"The table already has a column '{column}'. Pass another name with column=."
        )
    items = pair_scores.frame_items(table, image, caption, folder)
    loaded = load_model(model) if isinstance(model, str) else model
    inner = loaded.model if isinstance(loaded, LoadedModel) else loaded
    store = Store(cache or stores.DEFAULT)
    with pair_scores.pair_scorer(inner, items, store, Progress()) as scores:
        return table.assign(**{column: scores(0, len(items))})


def results(key: str = "", cache: Cache = None, *, models: str | Sequence[str] = ()) -> Results:
    """Load the stored results for a question set or run. By default, load the most complete comparison.

    Bundled results are included, but your own results come first.

    Args:
        key: Key of a question set or a run, or a prefix of one.
        cache: Folder or URL of the results.
        models: Models that must all have answered the question set, by stored name or display name.

    Raises:
        NotFound: No results are stored, or none with the given key or models.
    """
    root = cache or stores.DEFAULT
    store = shipped.opened(root)
    wanted = {find_model(store, name) for name in ([models] if isinstance(models, str) else models)}
    sets = views_runs.question_set_rows(store)
    keys = [row.case_key for row in sets if wanted <= set(row.models)]
    if not sets:
        raise NotFound("stored results", str(root), [], "Run a probe first: vlprobe.run(...).")
    if not keys:
        known = dict.fromkeys(model for row in sets for model in row.models)
        raise NotFound("stored results of", " and ".join(sorted(wanted)), known)
    matching = [full for full in keys if full.startswith(key)]
    if len(matching) == 1 or not key:
        return Results(store, views_runs.question_set(store, matching[0]))
    manifest = find_run(store, key)
    version_of = str(manifest["key"])
    return Results(
        store, views_runs.question_set(store, manifest["case_key"], version_of=version_of)
    )


def failures(
    of: Results | str = "",
    model: str = "",
    *,
    kind: str = "",
    limit: int = 12,
    cache: Cache = None,
    **conditions: str,
) -> Failures:
    """Return the cases that fool a model, worst first.

    Args:
        of: The result of `run` or `results`, or the key of a run or question set.
        model: One of the models in the results [the first].
        kind: Kind of cases, such as "flip" or "paraphrase" [the first that the model answered].
        limit: Maximum number of cases.
        cache: Folder or URL of the results, if `of` is a key.
        conditions: `subtype`, `rule`, `tag` (NAME=VALUE), `contains`, `outcome` ("fooled", "tied",
            "held", "all"), `sort` ("worst", "closest", "best", "models", "suspects_last", "dataset").
    """
    question_results = results(of, cache) if isinstance(of, str) else of
    return question_results.failures(model, kind, limit, **conditions)


def compare(
    of: Results | str = "", model: str = "", other: str = "", *, kind: str = "", cache: Cache = None
) -> Compared:
    """Compare two models on the same questions with paired tests.

    Args:
        of: The result of `run` or `results`, or the key of a run or question set.
        model: The baseline [the first model].
        other: The model that is compared with the baseline [the second model].
        kind: Kind of cases to show [the first that both models answered].
        cache: Folder or URL of the results, if `of` is a key.
    """
    question_results = results(of, cache) if isinstance(of, str) else of
    return question_results.compare(model, other, kind)
