"""Linear layers on AMD's processors: MKL, which PyTorch multiplies with, gives these its slower
AVX2 code.

oneDNN, which PyTorch has too, uses all 512 bits and multiplies 1.7 times as fast. It wants the
weights in another order, which takes their memory once more. Embeddings change by about 1e-7, as
they do with the size of a batch.
"""

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

CPU = Path("/proc/cpuinfo")


@functools.cache
def is_supported() -> bool:
    """Whether this is such a processor, and PyTorch has what it takes."""
    import torch

    is_amd = CPU.is_file() and "AuthenticAMD" in CPU.read_text(encoding="utf-8", errors="replace")
    has_both = all(
        hasattr(
            torch.ops.mkldnn,
            name,
        )
        for name in ("_linear_pointwise", "_reorder_linear_weight")
    )
    return is_amd and has_both and torch.backends.cpu.get_cpu_capability() == "AVX512"


@contextlib.contextmanager
def linear() -> Iterator[None]:
    """Within it, layers whose weights are parameters in fp32 multiply by oneDNN; for inference mode
    only.
    """
    import torch

    # attention as one operation would keep its layers from us
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with _mode():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


@functools.cache
def _mode() -> contextlib.AbstractContextManager:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.weak import WeakTensorKeyDictionary

    class Linear(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.packed: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

        def __torch_dispatch__(self, function, types, args=(), kwargs=None) -> "torch.Tensor":
            if function is torch.ops.aten.linear.default and args[0].numel():
                weight = args[1]
                if (
                    isinstance(
                        weight,
                        torch.nn.Parameter,
                    )
                    and weight.dtype == args[0].dtype == torch.float32
                ):
                    return self.multiply(*args)
            return function(*args, **(kwargs or {}))

        def multiply(
            self, x: "torch.Tensor", weight: "torch.Tensor", bias: "torch.Tensor | None" = None
        ) -> "torch.Tensor":
            version, packed = self.packed.get(weight) or (None, None)
            if version != weight._version:  # not packed yet, or trained since
                packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
                self.packed[weight] = (weight._version, packed)
            return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")

    return Linear()
