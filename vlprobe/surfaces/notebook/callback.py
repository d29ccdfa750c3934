"""Probe a model every N steps during training, with the weights that it has at that step."""

import contextlib
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.models import frozen
from vlprobe.models.frozen import TorchDualEncoder
from vlprobe.models.modules import TorchModel
from vlprobe.render.html.elements import column_heads, embed, table, tag
from vlprobe.render.numbers import number, unit_of
from vlprobe.surfaces.notebook import drawing
from vlprobe.surfaces.notebook.interface import load_dataset, run
from vlprobe.surfaces.notebook.objects import LoadedData, Results
from vlprobe.types import Dataset

if TYPE_CHECKING:
    import torch
    from PIL import Image

    Tower = Callable[[torch.Tensor], torch.Tensor]


class Callback:
    """Runs a probe on a module every N training steps. Call it once per step in a plain torch training loop.

    A call does not change the module's weights, gradients and modes (train or eval) or torch's random state, so
    training gives the same weights with and without the callback.

    Args:
        module: The model that is trained.
        preprocess: Converts a PIL image to a tensor, as in the evaluation of the model.
        tokenizer: Converts a list of texts to an int64 tensor of shape (n, columns).
        every: Number of steps between two runs of the probe. The first run is at step 0.
        probe: The probe to run.
        dataset: A dataset name, or the result of `load_dataset`. "" selects the probe's demo data.
        limit: Maximum number of items to use; 0 uses all.
        options: Options of the probe.
        name: Name of the training run. Results are stored under the model name NAME@STEP.
        encode_image: Converts preprocessed pictures of shape (n, ...) to embeddings of shape (n, dim)
            [`module.encode_image`].
        encode_text: Converts tokens of shape (n, columns) to embeddings of shape (n, dim) [`module.encode_text`].
        version: Identifies the preprocessing, tokenizer and towers. Equal weights with an equal version are not probed
            twice, not even by a later process. Without a version, results from other processes are not used.
        cache: Folder or URL of the results.
        on_results: Function that is called with the step and its results, for example to log them.
        strict: Whether a failed probe raises an error. Otherwise, it causes a warning.
    """

    def __init__(
        self,
        module: "torch.nn.Module",
        preprocess: Callable[..., Any],
        tokenizer: Callable[..., Any],
        *,
        every: int = 1000,
        probe: str = "lgip",
        dataset: str | Dataset | LoadedData = "",
        limit: int = 100,
        options: Mapping[str, object] | None = None,
        name: str = "training",
        encode_image: Callable[..., Any] | None = None,
        encode_text: Callable[..., Any] | None = None,
        version: str = "",
        cache: str | Path | None = None,
        on_results: Callable[[int, Results], object] | None = None,
        strict: bool = False,
    ) -> None:
        if every < 1:
            raise InvalidInput(f"`every` must be at least 1 (got {every}).")
        if not name or any(char in name for char in ":@\n"):
            raise InvalidInput(f"'{name}' is not a valid name. It must not contain a colon or @.")
        self.module, self.every, self.name, self.cache = module, every, name, cache
        self.probe, self.limit, self.options, self.strict = probe, limit, options, strict
        self.dataset = (
            load_dataset(dataset, cache) if dataset and isinstance(dataset, str) else dataset
        )
        self._on_results, self.version = on_results, version or uuid.uuid4().hex
        self.preprocess, self.tokenizer = preprocess, tokenizer
        self.encode_image = encode_image or _tower(module, "encode_image")
        self.encode_text = encode_text or _tower(module, "encode_text")
        self.history: dict[int, Results] = {}  # by step

    def __call__(self, step: int) -> Results | None:
        """Probe the module if a run is due at this step. Return None if none is due or if the probe failed."""
        if step % self.every:
            return None
        try:
            stepped = self.now(step)
        except VlprobeError as error:
            if self.strict:
                raise
            warnings.warn(f"vlprobe at step {step}: {error}", stacklevel=2)
            return None
        return stepped

    def now(self, step: int) -> Results:
        """Probe the module immediately and record the results for the given step. Raises VlprobeError."""
        with _as_it_was(self.module):
            stepped = run(
                ModuleEncoder(self, step),
                self.dataset,
                self.probe,
                options=self.options,
                cache=self.cache,
                limit=self.limit,
                examine=False,
                keep_embeddings=False,
            )
        self.history[step] = stepped
        if self._on_results:
            self._on_results(step, stepped)
        return stepped

    @property
    def table(self) -> pd.DataFrame:
        """All results so far, with one row per step and one column per metric."""
        rows = {
            step: {row["metric"]: row["value"] for row in stepped.table.to_dict("records")}
            for step, stepped in sorted(self.history.items())
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("step")

    def _repr_html_(self) -> str:
        if not self.history:
            return drawing.frame(drawing.heading("No probe results yet"))
        newest = self.history[max(self.history)]
        metrics = newest.question_set.metrics
        rows = []
        for step, values in self.table.to_dict("index").items():
            cells = [
                tag("td", number(value, unit_of(metrics[name], "cosine")))
                for name, value in values.items()
            ]
            rows.append(f"<tr>{tag('th', f'{step:,}', scope='row')}{''.join(cells)}</tr>")
        heads = column_heads(["Step", *(metrics[name].label for name in self.table.columns)])
        title = f"{self.name} at step {max(self.history):,}: worst cases"
        return drawing.frame(
            drawing.heading(title),
            newest.failures(limit=4).cards_html,
            embed(table("Metrics by step", heads, rows)),
        )


def _tower(module: "torch.nn.Module", name: str) -> Callable[..., Any]:
    tower = getattr(module, name, None)
    if not callable(tower):
        raise InvalidInput(f"{type(module).__name__} has no {name}. Pass the function as {name}=.")
    return tower


@contextlib.contextmanager
def _as_it_was(module: "torch.nn.Module") -> Iterator[None]:
    """Put the module into eval mode. On exit, restore all train or eval modes and torch's random state."""
    import torch

    modes = {layer: layer.training for layer in module.modules()}
    device = next(module.parameters()).device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        module.eval()
        try:
            yield
        finally:
            for layer, mode in modes.items():
                layer.training = mode


class ModuleEncoder(TorchDualEncoder):
    """The module of a callback, with the weights that it has at a step. The module is not moved or changed."""

    def __init__(self, callback: Callback, step: int) -> None:
        module = callback.module
        self.name, self.note = f"{callback.name}@{step}", "in the middle of a training"
        self.callback = callback
        self.device = str(next(module.parameters()).device)
        self.digest = frozen.digest({"version": callback.version}, cast(TorchModel, module))
        self.dim = self.encode_texts(self.tokenize(["a text"])).shape[1]

    def preprocess(self, image: "Image.Image") -> np.ndarray:
        """Convert an RGB PIL image to an array."""
        return np.asarray(self.callback.preprocess(image))

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Convert preprocessed pictures with shape (n, ...) to unit vectors with shape (n, dim)."""
        return self._units(self.callback.encode_image, pixels)

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Tokenize texts to int64 with shape (n, columns)."""
        return np.asarray(self.callback.tokenizer(list(texts)), dtype=np.int64)

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Convert tokens with shape (n, columns) to unit vectors with shape (n, dim)."""
        return self._units(self.callback.encode_text, tokens)

    def _units(self, tower: "Tower", batch: np.ndarray) -> np.ndarray:
        import torch

        with (
            torch.autocast(torch.device(self.device).type, enabled=False),
            frozen.arithmetic(self.device, "fp32"),
        ):
            return frozen.unit(tower(frozen.on_device(np.ascontiguousarray(batch), self.device)))
