"""Model calls that halve the batch if the device runs out of memory."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from vlprobe.errors import InvalidInput, is_out_of_memory

_log = logging.getLogger(__name__)
Output = TypeVar("Output")
_spent = {"seconds": 0.0}  # in model calls by all threads in this process
_spent_lock = threading.Lock()


def model_seconds() -> float:
    """Return the total time in seconds that this process has spent in model calls."""
    return _spent["seconds"]


class DeviceBatches:
    """Calls a model, splitting each batch into pieces that fit in the device's memory.

    Args:
        model_name: The name of the model in error messages.
    """

    def __init__(self, model_name: str) -> None:
        self._model_name = model_name
        # The largest batch for a stage, known after an out-of-memory error
        self._oom_batch_caps: dict[str, int] = {}

    def run(
        self, stage: str, call: Callable[..., Output], *batch: Sequence | np.ndarray
    ) -> list[Output]:
        """Call the model on a batch, in as many pieces as needed, and return the outputs of the pieces in order.

        Args:
            stage: "texts", "images", "pictures" or "pairs". Each stage runs out of memory at its own batch size.
            call: A function that is called with slices of each sequence in `batch`.
            batch: Sequences of equal length.

        Raises:
            InvalidInput: Not even a single row fits in memory.
        """
        outputs: list[Output] = []
        start, n_rows = 0, len(batch[0])
        while start < n_rows:
            cap = self._oom_batch_caps.get(stage, n_rows)
            began = time.perf_counter()
            output = _call_or_none(call, *(column[start : start + cap] for column in batch))
            with _spent_lock:
                _spent["seconds"] += time.perf_counter() - began
            if output is not None:
                outputs.append(output)
                start += cap
                continue
            size = min(cap, n_rows - start)
            if size == 1:
                raise InvalidInput(
                    f"Model '{self._model_name}' runs out of device memory during {stage} "
                    "even at batch size 1. Close other programs that use the device, or "
                    "use --device cpu or --precision fp16."
                )
            self._oom_batch_caps[stage] = size // 2
            _log.warning(
                "Out of memory with a batch of %d %s; using %d from now on.", size, stage, size // 2
            )
        return outputs

    def run_checked(
        self,
        stage: str,
        call: Callable[..., np.ndarray],
        shape: tuple[int, ...],
        *batch: Sequence | np.ndarray,
    ) -> np.ndarray:
        """Call the model and return one array. Raises InvalidInput unless it is finite float32 with the given shape."""
        output = np.concatenate(self.run(stage, call, *batch))
        noun = "scores" if stage == "pairs" else stage
        if output.shape != shape or output.dtype != np.float32:
            raise InvalidInput(
                f"Model '{self._model_name}' returned {output.dtype} {noun} of shape {output.shape}; "
                f"expected float32 of shape {shape}. This is a bug in its adapter."
            )
        if not np.isfinite(output).all():
            n_bad = int((~np.isfinite(output.reshape(len(output), -1)).all(axis=1)).sum())
            raise InvalidInput(
                f"Model '{self._model_name}' returned NaN or infinite values for {n_bad} of {len(output)} {stage}. "
                "Try --precision fp32, or another checkpoint."
            )
        return output


def _call_or_none(call: Callable[..., Output], *batch: Sequence | np.ndarray) -> Output | None:
    """Call the model and return its output, or None if its device runs out of memory."""
    try:
        return call(*batch)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
    if "torch" in sys.modules:  # releases what the failed call held before the next try
        sys.modules["torch"].cuda.empty_cache()
    return None
