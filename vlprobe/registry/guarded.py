"""What a plug-in gives, checked and held to one line an error: the same protocols as inside, with the
digest of its code in every key.
"""

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from vlprobe.errors import InvalidInput
from vlprobe.registry.plugins import Imported, translated
from vlprobe.storage.access import refuse_name
from vlprobe.types import (
    Capabilities,
    Case,
    Dataset,
    Encoder,
    Item,
    Metric,
    Model,
    Picture,
    Probe,
    Reader,
    Run,
)
from vlprobe.types.presentation import Presentation

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from vlprobe.perturb.lgip import CaptionEdits

METHODS = {  # that a model has which declares the capability
    "embeds_texts": ("tokenize", "encode_texts"),
    "embeds_images": ("preprocess", "encode_images"),
    "scores_pairs": ("tokenize", "preprocess", "encode_pictures", "match"),
    "matches_side_by_side": ("first_is_left",),
    "answers_cases": ("check_cases", "answers"),
}


def _refused(imported: Imported, reason: str) -> InvalidInput:
    return InvalidInput(f"{imported.plugin.title} {reason}")


def combined(digest: str, imported: Imported) -> str:
    """A digest that changes with what the plug-in says and with its code."""
    return hashlib.blake2b(f"{digest}\0{imported.digest}".encode(), digest_size=16).hexdigest()


class Family:
    """The models or the datasets of one plug-in, as a family of the registry."""

    def __init__(self, folder: str, imported: Imported) -> None:
        self.imported, self.target = imported, cast(Any, imported.target)
        name = imported.plugin.name
        self.is_python = name.startswith("py:")
        own_prefix = getattr(self.target, "PREFIX", None)
        if self.is_python:
            self.own_prefix = str(own_prefix or Path(imported.plugin.module).stem)
        elif own_prefix not in (None, name):
            raise _refused(imported, f"calls itself '{own_prefix}'. Expected '{name}' as PREFIX.")
        else:
            self.own_prefix = name
        self.PREFIX = name
        if not offers(folder, imported.target):
            raise _refused(
                imported, f"is none of vlprobe's {folder}. Expected {_expected(folder)}."
            )

    def _own(self, name: str) -> str:
        """The name as the plug-in knows it: its own prefix before what follows."""
        return f"{self.own_prefix}{name.removeprefix(self.PREFIX)}"

    def names(self) -> list[str]:
        """What can be typed; the prefix alone where the plug-in does not say."""
        if not callable(getattr(self.target, "names", None)):
            return [self.PREFIX]
        with translated(self.imported.plugin, "in names"):
            own_names = [str(name) for name in self.target.names()]
        return [f"{self.PREFIX}{name.removeprefix(self.own_prefix)}" for name in own_names]

    def check_name(self, name: str) -> None:
        """Raises what the plug-in finds wrong with a name, in one line."""
        refuse_name(f"py{name.removeprefix(self.PREFIX)}")
        if callable(getattr(self.target, "check_name", None)):
            with translated(self.imported.plugin, "in check_name"):
                self.target.check_name(self._own(name))

    def load_model(self, name: str, device: str, precision: str) -> Model:
        """The model of that name, checked."""
        refuse_name(f"py{name.removeprefix(self.PREFIX)}")
        with translated(self.imported.plugin, "in load"):
            model = self.target.load(self._own(name), device=device, precision=precision)
        return cast(Model, GuardedModel(model, name, self.imported))

    def load_dataset(self, name: str, cache: Path) -> Dataset:
        """The dataset of that name, checked."""
        refuse_name(f"py{name.removeprefix(self.PREFIX)}")
        with translated(self.imported.plugin, "in load"):
            dataset = self.target.load(self._own(name), cache)
            digest, items = dataset.digest, tuple(dataset.items)
            notes = tuple(map(str, getattr(dataset, "notes", ())))
        if not isinstance(digest, str) or not digest:
            raise _refused(self.imported, "gives a dataset without a digest. Expected a text.")
        strays = [item for item in items if not isinstance(item, Item)]
        if strays or not items:
            gift = f"a {type(strays[0]).__name__} among its items" if strays else "no items"
            raise _refused(self.imported, f"gives {gift}. Expected vlprobe.types.Item.")
        if len({item.id for item in items}) < len(items):
            raise _refused(self.imported, "gives several items one id. Give each its own.")
        guarded = GuardedDataset(name, combined(digest, self.imported), items, notes)
        return cast(Dataset, guarded)


def offers(folder: str, target: object) -> bool:
    """Whether a plug-in's object is what a folder (models, datasets, probes, rules) expects.

    A `load` that takes a `cache` loads datasets, any other loads models.
    """
    if folder == "probes":
        return isinstance(getattr(target, "PROBE", target), Probe)
    if folder == "rules":
        return callable(getattr(target, "edits", None))
    load = getattr(target, "load", None)
    if not callable(load):
        return False
    try:
        return ("cache" in inspect.signature(load).parameters) == (folder == "datasets")
    except (TypeError, ValueError):  # no Python function
        return False


def _expected(folder: str) -> str:
    return {
        "models": "load(name, device, precision)",
        "datasets": "load(name, cache)",
        "probes": "PROBE, an instance of a subclass of vlprobe.types.Probe",
        "rules": "edits(captions, item_id, seed)",
    }[folder]


@dataclass(frozen=True, slots=True)
class GuardedDataset:
    """A dataset of a plug-in."""

    name: str
    digest: str
    items: tuple[Item, ...]
    notes: tuple[str, ...]


class GuardedModel:
    """A model of a plug-in: what it raises is one line, and its digest covers the plug-in's code."""

    def __init__(self, model: Any, name: str, imported: Imported) -> None:
        self._model, self._imported = model, imported
        with translated(imported.plugin, "in load"):
            digest, self.capabilities = model.digest, model.capabilities
            self.note = str(getattr(model, "note", ""))
        if not isinstance(digest, str) or not digest:
            raise _refused(imported, "gives a model without a digest. Expected a text.")
        if not isinstance(self.capabilities, Capabilities):
            raise _refused(imported, "gives a model whose capabilities are no Capabilities.")
        declared = [flag for flag in METHODS if getattr(self.capabilities, flag)]
        missing = {
            method: flag
            for flag in declared
            for method in METHODS[flag]
            if not callable(getattr(model, method, None))
        }
        if missing or not declared:
            method, flag = next(iter(missing.items()), ("any method", "nothing"))
            raise _refused(imported, f"gives a model that declares {flag} and lacks {method}.")
        self.name, self.digest = name, combined(digest, imported)

    def facts(self) -> Mapping[str, str]:
        """What was built, as the model says; and whose code it is."""
        return {**self._call("facts"), "plug-in": self._imported.plugin.provider}

    def published(self) -> Mapping[str, str]:
        """What its publisher states."""
        return self._call("published")

    def _call(self, method: str) -> Mapping[str, str]:
        function = getattr(self._model, method, None)
        return _guard(function, self._imported, method)() if callable(function) else {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._model, name)
        return _guard(value, self._imported, name) if callable(value) else value


def _guard(function: Callable[..., Any], imported: Imported, name: str) -> Callable[..., Any]:
    """The function, whose errors are one line."""

    @functools.wraps(function)
    def guarded(*arguments: Any, **settings: Any) -> Any:
        with translated(imported.plugin, f"in {name}"):
            return function(*arguments, **settings)

    return guarded


class GuardedProbe(Probe):
    """A probe of a plug-in: what it raises is one line, and the digest of its code is among its options."""

    def __init__(self, probe: Probe, name: str, imported: Imported) -> None:
        self._probe, self._imported = probe, imported
        with translated(imported.plugin, "where its probe describes itself"):
            self.name, self.version = name, int(probe.version)
            self.dataset, self.needs = str(probe.dataset), str(probe.needs)
            self.presentation, self.options = probe.presentation, tuple(probe.options)
            self.metrics, self.side_tables = tuple(probe.metrics), probe.side_tables
        if not isinstance(self.presentation, Presentation) or not self.presentation.kinds:
            raise _refused(imported, "gives a probe without a presentation of its kinds.")
        if not self.metrics or not all(isinstance(metric, Metric) for metric in self.metrics):
            raise _refused(imported, "gives a probe without metrics.")

    def _guarded(self, doing: str) -> Any:
        return translated(self._imported.plugin, f"in {doing}")

    def check_options(self, options: Mapping[str, object]) -> None:
        """Raises what the probe finds wrong."""
        with self._guarded("check_options"):
            self._probe.check_options(options)

    def pin(self, options: Mapping[str, object], cache: Path) -> Mapping[str, object]:
        """Adds the digest of the plug-in's code."""
        with self._guarded("pin"):
            pinned = dict(self._probe.pin(options, cache))
        return {**pinned, "plugin_digest": self._imported.digest}

    def loads_models(self, options: Mapping[str, object]) -> bool:
        """One process makes all cases: what a plug-in's file defines cannot be sent to another."""
        return True

    def for_items(self, items: Sequence[Item], options: Mapping[str, object]) -> "GuardedProbe":
        """The probe of these items, guarded as well."""
        with self._guarded("for_items"):
            probe = self._probe.for_items(items, options)
        return GuardedProbe(probe, self.name, self._imported)

    def cases(
        self, item: Item, options: Mapping[str, object], seed: int
    ) -> tuple[list[Case], Mapping[str, int]]:
        """The probe's cases."""
        with self._guarded("cases"):
            cases, dropped = self._probe.cases(item, options, seed)
            cases = list(cases)
        if not all(isinstance(case, Case) for case in cases):
            raise _refused(self._imported, "gives cases that are no vlprobe.types.Case.")
        return cases, dropped

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> "Callable[[pa.Table], pa.Table]":
        """The probe's scorer. Raises InvalidInput where the run was planned with other code."""
        self._require_same_code(run)
        with self._guarded("scorer"):
            score = self._probe.scorer(encoder, run, items, cases, cache)
        return _guard(score, self._imported, "scorer")

    def candidates(
        self, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> tuple[Sequence[Picture], Sequence[str]]:
        """The probe's candidates."""
        self._require_same_code(run)
        with self._guarded("candidates"):
            return self._probe.candidates(run, items, cases, cache)

    def _require_same_code(self, run: Run) -> None:
        if run.options.get("plugin_digest") != self._imported.digest:
            raise _refused(self._imported, "is not the same on all machines. Install one version.")

    def survey(self, blocks: "Iterable[pd.DataFrame]") -> Mapping[str, object]:
        """The probe's survey."""
        with self._guarded("survey"):
            return self._probe.survey(blocks)

    def prepare(self, rows: "pd.DataFrame", survey_facts: Mapping[str, object]) -> "pd.DataFrame":
        """The probe's columns."""
        with self._guarded("prepare"):
            return self._probe.prepare(rows, survey_facts)


def probe_of(imported: Imported) -> GuardedProbe:
    """The probe of a plug-in, by the plug-in's name. Raises InvalidInput where it has none."""
    probe = getattr(imported.target, "PROBE", imported.target)
    if not isinstance(probe, Probe):
        raise _refused(imported, f"is no probe. Expected {_expected('probes')}.")
    return GuardedProbe(probe, imported.plugin.name, imported)


class GuardedRules:
    """A set of edit rules of a plug-in."""

    def __init__(self, imported: Imported) -> None:
        if not offers("rules", imported.target):
            raise _refused(imported, f"is no set of edit rules. Expected {_expected('rules')}.")
        self.name, self.digest, self._imported = imported.plugin.name, imported.digest, imported

    def edits(
        self, captions: Sequence[str], item_id: str, seed: int, **limits: Any
    ) -> "CaptionEdits":
        """The edits of one image's captions, checked and capped: see `perturb.outside.kept`."""
        from vlprobe.perturb import outside

        title = self._imported.plugin.title
        with translated(self._imported.plugin, "in edits"):
            target = cast(Any, self._imported.target)
            every = [list(edits) for edits in target.edits(tuple(captions), item_id, seed)]
        return outside.kept(captions, item_id, every, title, seed=seed, **limits)
