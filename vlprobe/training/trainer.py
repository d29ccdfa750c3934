"""Fine-tune a model in a resumable way, and write a checkpoint that can be probed like any other model.

The model stays in evaluation mode, without dropout and with fixed BatchNorm statistics. Altered pictures therefore do
not change the statistics, and a batch gives the same result when it is processed in pieces.
"""

import contextlib
import hashlib
import io
import json
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from vlprobe import registry
from vlprobe.datasets.languages import foreign_captions
from vlprobe.errors import InvalidInput
from vlprobe.models import demo, frozen, open_clip
from vlprobe.models.checkpoint import DAMAGED
from vlprobe.models.heads import HubModel
from vlprobe.models.open_clip_encoder import OpenClipEncoder
from vlprobe.storage.files import lock, write_bytes, write_json
from vlprobe.training import batches, objective, outputs
from vlprobe.training.batches import Batches, rows, split
from vlprobe.training.learner import Learner
from vlprobe.training.objective import PARTS, Settings
from vlprobe.training.request import TrainRequest
from vlprobe.types import Dataset, Item

# Label, done and total; may raise to stop
Progress = Callable[[str, float, float], None]
Normal = tuple[np.ndarray, np.ndarray]  # mean and standard deviation of each channel
_SAVERS = {  # for the model families that can be tuned
    "demo": demo.save_tuned,
    **dict.fromkeys(("openclip", "hf", "hf-itm"), open_clip.save_tuned),
}
MOST_MATCHED = 64  # rows in a batch for a matching head, which scores the square of this number
EXPECTED = "a demo:, openclip:, hf: or hf-itm: model"
# Seconds between two states on disk, which is the work lost when a run is killed
_SAVE_EVERY = 30.0
_SAVE_SHARE = 0.05  # share of the time that saving may take; a large model is saved less often


def train(request: TrainRequest, cache: Path, progress: Progress = lambda *_: None) -> dict:
    """Fine-tune a model. Repeating a request continues a stopped run, or returns the card of a finished one.

    Args:
        request: What to train. On one CPU thread, the same request gives the same weights, no matter how
            often it was stopped.
        cache: The folder for drawn pictures and file digests.
        progress: A function called before the work and after every step. If it raises, the state is
            saved first.

    Returns:
        The card: the request, `tuned` (the name to probe), `digest` (of the tuned model),
        `start_digest`, `data` (the name, digest and number of items for each dataset), `held_out` (the
        number of items, and their losses before and after), `seconds`, and `added_time`
        (see `Learner.added_time`) if the loss has more than one term.

    Raises:
        InvalidInput: The request is not valid, the file belongs to another training run, or a loss is
            not finite.
        NotFound: The model or dataset does not exist.
    """
    _check(request)
    outputs.prepare_folder(request.path)
    with lock(
        request.path.with_name(f".{request.path.stem}.lock"),
        lambda: progress("Waiting for another process", 0, 1),
    ):
        progress(f"Loading {request.model}", 0, 1)
        encoder = registry.load_model(request.model, request.device)
        if not isinstance(encoder, OpenClipEncoder | HubModel):
            raise InvalidInput(f"'{request.model}' cannot be fine-tuned. Expected {EXPECTED}.")
        module, normal = _trainable(encoder, request.batch_size)
        progress("Reading the data", 0, 1)
        datasets = [registry.load_dataset(name, cache) for name in request.datasets]
        sources, foreign = _sources(datasets, request, cache)
        pinned = _pinned(request, encoder, sources)
        card = outputs.finished_card(request.path, pinned)
        if card is None:
            items = [item for dataset in datasets for item in dataset.items]
            with _threads(request.threads), frozen.without_tf32():
                training = _Training(
                    request, encoder, module, normal, items, foreign, pinned, progress
                )
                card = training.run()
            card = {
                **asdict(request),
                "start_digest": encoder.digest,
                "data": sources,
                "pinned": pinned,
                **card,
            }
            card["tuned"] = request.tuned
            save = _SAVERS[request.model.partition(":")[0]]
            save(request.model, encoder.module, request.path, card)
            progress("Reading the weights again", 1, 1)
            card["digest"] = registry.load_model(request.tuned, "cpu").digest
            write_json(request.path.with_suffix(".json"), card)
            request.path.with_suffix(".state.pt").unlink(missing_ok=True)
        return card


def _trainable(encoder: OpenClipEncoder | HubModel, batch_size: int) -> tuple[Any, Normal | None]:
    """Return the module to train, and the mean and standard deviation used in preprocessing, shape (3, 1, 1)."""
    if isinstance(encoder, HubModel):
        from vlprobe.training.hub_models import Trainable

        trainable = Trainable(encoder)
        if trainable.has_head and batch_size > MOST_MATCHED:
            raise InvalidInput(
                f"A matching head scores every picture with every caption of a batch: {batch_size**2:,} "
                f"pairs for --batch-size {batch_size}. Expected a batch size of at most {MOST_MATCHED}."
            )
        return trainable, trainable.normal
    channels = encoder.module.visual.preprocess_cfg
    mean, std = (np.array(channels[name], np.float32).reshape(-1, 1, 1) for name in ("mean", "std"))
    return encoder.module, (mean, std)


def _sources(
    datasets: Sequence[Dataset], request: TrainRequest, cache: Path
) -> tuple[list[dict], Mapping[str, str]]:
    """Describe each dataset, and collect the captions not in English, which `consistency` and `flip` leave unedited.

    Raises:
        InvalidInput: The loss uses `consistency` or `flip`, and no caption is in English.
    """
    sources: list[dict] = []
    foreign: dict[str, str] = {}
    n_captions = 0
    for dataset in datasets:
        captions = {
            caption for item in dataset.items for row in rows(item) for caption in row.captions
        }
        foreign_of_dataset = foreign_captions(captions, cache)
        facts = {"name": dataset.name, "digest": dataset.digest, "items": len(dataset.items)}
        sources.append(
            facts | ({"not_english": len(foreign_of_dataset)} if foreign_of_dataset else {})
        )
        foreign, n_captions = {**foreign, **foreign_of_dataset}, n_captions + len(captions)
    losses = sorted(objective.weights(request.loss).keys() & {"consistency", "flip"})
    n_foreign = sum(source.get("not_english", 0) for source in sources)
    if losses and n_captions and n_foreign == n_captions:
        raise InvalidInput(
            f"{n_foreign:,} of {n_captions:,} captions are not in English, but '{losses[0]}' uses "
            "rules for English. Remove this term or train on English captions."
        )
    return sources, foreign


def settings(request: TrainRequest) -> Settings:
    """Return the settings for the loss terms in a training request."""
    return Settings(**{field.name: getattr(request, field.name) for field in fields(Settings)})


class _Training:
    """A training run for one model, with its held-out split, steps, log, and the state saved for resuming."""

    def __init__(
        self,
        request: TrainRequest,
        encoder: OpenClipEncoder | HubModel,
        module: Any,
        normal: Normal | None,
        items: list[Item],
        foreign: Collection[str],
        pinned: str,
        progress: Progress,
    ) -> None:
        self._request, self._pinned, self._progress = request, pinned, progress
        self._state, self._log = (
            request.path.with_suffix(suffix) for suffix in (".state.pt", ".jsonl")
        )
        weights = objective.weights(request.loss)
        learned, held_out = split(items)
        words = batches.vocabulary(
            caption for item in learned for row in rows(item) for caption in row.captions
        )
        self._batches = Batches(
            learned,
            encoder,
            request.batch_size,
            request.seed,
            weights.keys(),
            words,
            normal,
            request.workers,
            foreign,
        )
        n = sum(len(rows(item)) for item in held_out)
        # Batches are as even as possible, because rows in an incomplete batch are not evaluated
        size = n // math.ceil(n / request.batch_size)
        self._held_out = list(
            Batches(held_out, encoder, size, 0, PARTS.keys(), words, foreign=foreign).epoch()
        )
        self._judged = {"items": len(held_out), "rows": sum(batch.n for batch in self._held_out)}
        names = ("rate", "decay", "warm_up", "steps", "freeze", "precision", "piece")
        options = {name: getattr(request, name) for name in names}
        self._learner = Learner(module, weights, settings(request), **options)

    def run(self) -> dict:
        """Run the remaining steps. Return the held-out losses and the training time for the card."""
        request = self._request
        done, spent = self._resume()
        started = saved = time.monotonic()
        took = 0.0
        with ThreadPoolExecutor(1) as ahead:  # reads the next batch while the model learns
            coming = ahead.submit(self._batches.batch, done)
            while done < request.steps:
                batch = coming.result()
                if done + 1 < request.steps:
                    coming = ahead.submit(self._batches.batch, done + 1)
                losses = self._learner.learn(batch, done)
                done += 1
                seconds = round(spent + time.monotonic() - started, 2)
                self._note({"step": done, **losses, "seconds": seconds})
                if done % request.validate_every == 0 or done == request.steps:
                    self._validate(done)
                stop = done == request.steps
                try:
                    self._progress(f"Training {request.model}", done, request.steps)
                except BaseException:
                    stop = True
                    raise
                finally:
                    begun = time.monotonic()
                    if stop or begun - saved > max(_SAVE_EVERY, took / _SAVE_SHARE):
                        self._save(done, seconds)
                        saved = time.monotonic()
                        took = saved - begun
        lines = outputs.read_log(request.path)
        judged = [line["held_out"] for line in lines if "held_out" in line]
        added_time = {"added_time": lines[0]["added_time"]} if "added_time" in lines[0] else {}
        held_out = self._judged | {"before": judged[0], "after": judged[-1]}
        return {
            "held_out": held_out,
            "seconds": round(spent + time.monotonic() - started, 1),
            **added_time,
        }

    def _validate(self, step: int) -> None:
        """Log the mean of every loss term over the held-out items, including terms that are not trained."""
        losses = [self._learner.judge(batch, PARTS.keys()) for batch in self._held_out]
        by_part = {name: [loss[name] for loss in losses if name in loss] for name in PARTS}
        line = {
            "step": step,
            "held_out": {
                name: float(np.mean(values)) for name, values in by_part.items() if values
            },
        }
        # The first line identifies the training run
        if not step:
            line["pinned"] = self._pinned
            added_time = self._learner.added_time(self._batches.batch(0))
            if not math.isnan(added_time):
                line["added_time"] = added_time
        self._note(line)

    def _note(self, line: dict) -> None:
        with self._log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _save(self, done: int, seconds: float) -> None:
        import torch

        learner, buffer = self._learner, io.BytesIO()
        state = {
            "pinned": self._pinned,
            "done": done,
            "seconds": seconds,
            "model": learner.model.state_dict(),
            "optimizer": learner.optimizer.state_dict(),
            "scaler": learner.scaler.state_dict(),
        }
        torch.save(state, buffer)
        write_bytes(self._state, buffer.getvalue())

    def _resume(self) -> tuple[int, float]:
        """Restore a stopped run of the same request. Return its finished steps and seconds, both 0 for a new run."""
        import torch

        if not self._state.exists():
            write_bytes(self._log, b"")
            self._validate(0)
            return 0, 0.0
        try:
            state = torch.load(self._state, map_location="cpu", weights_only=True)
        except DAMAGED as error:
            raise InvalidInput(
                f"'{self._state}' cannot be read ({type(error).__name__}). Delete the file "
                "to start the training run again."
            ) from None
        if not isinstance(state, dict) or state.get("pinned") != self._pinned:
            raise InvalidInput(
                f"'{self._state}' belongs to another training run that was stopped. To "
                "continue that run, repeat its command. Otherwise, delete the file or choose "
                "another output."
            )
        self._learner.model.load_state_dict(state["model"])
        self._learner.optimizer.load_state_dict(state["optimizer"])
        self._learner.scaler.load_state_dict(state["scaler"])
        lines = [
            line for line in outputs.read_log(self._request.path) if line["step"] <= state["done"]
        ]
        write_bytes(self._log, "".join(json.dumps(line) + "\n" for line in lines).encode())
        return state["done"], state["seconds"]


def _pinned(request: TrainRequest, encoder: OpenClipEncoder | HubModel, sources: list[dict]) -> str:
    """Return a digest of everything in the request, model and data that can change the weights."""
    request_fields = request.recipe()
    for name in ("model", "datasets", "output", "device", "workers", "validate_every"):
        del request_fields[name]
    identity = [request_fields, encoder.digest, [source["digest"] for source in sources]]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    import torch

    n_threads = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def _check(request: TrainRequest) -> None:
    objective.weights(request.loss)
    objective.check(settings(request))
    if request.model.partition(":")[0] not in _SAVERS:
        raise InvalidInput(
            f"'{request.model}' cannot be fine-tuned. Expected {EXPECTED} that is not a preset."
        )
    probed = [
        name
        for name in request.datasets
        if name.partition(":")[0] in ("demo", "demo-pairs", "demo-triplets")
    ]
    if probed or not request.datasets:
        raise InvalidInput(
            f"'{probed[0] if probed else 'nothing'}' cannot be used for training, because it "
            "is used by probes or for validation. Expected demo-train, demo-train:pairs, or "
            "your own data."
        )
    if request.path.suffix != ".safetensors":
        raise InvalidInput(
            f"The output '{request.output}' is not a .safetensors file. Expected a name "
            "such as tuned.safetensors."
        )
    if request.freeze not in ("", "image", "text") or request.precision not in frozen.PRECISIONS:
        raise InvalidInput(
            f"freeze ('{request.freeze}') must be image, text or empty, and precision "
            f"('{request.precision}') must be one of {', '.join(frozen.PRECISIONS)}."
        )
    low = {
        "steps": 1,
        "batch_size": 2,
        "piece": 0,
        "warm_up": 0,
        "validate_every": 1,
        "workers": 1,
        "threads": 0,
    }
    for name, least in low.items():
        if getattr(request, name) < least:
            raise InvalidInput(f"{name} must be at least {least}. Got {getattr(request, name)}.")
    if not (0 < request.rate < 1 and 0 <= request.decay < 1 / request.rate):
        raise InvalidInput(
            f"rate ({request.rate}) must be between 0 and 1, and decay ({request.decay}) must be "
            "at least 0 and less than 1 / rate; for example, 1e-4 and 0.1."
        )
