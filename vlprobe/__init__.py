"""vlprobe: stress tests for vision-language models.

    import vlprobe

    model = vlprobe.load_model("demo:softmax")
    results = vlprobe.run(model, "folder:photos", "lgip")
    results.failures()                                     # pictures first, in a notebook
    vlprobe.compare(vlprobe.results(), "demo:softmax", "demo:weak")

`docs/python.md` documents the interface. Public names are imported when they are first used.
"""

import importlib
import os
from typing import TYPE_CHECKING

__version__ = "0.2.0"

# No telemetry; the libraries read these when they are imported.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

if TYPE_CHECKING:
    from vlprobe.surfaces.notebook.callback import Callback
    from vlprobe.surfaces.notebook.interface import (
        compare,
        edits,
        failures,
        load_dataset,
        load_model,
        results,
        run,
        score,
    )

__all__ = [
    "Callback",
    "__version__",
    "compare",
    "edits",
    "failures",
    "load_dataset",
    "load_model",
    "results",
    "run",
    "score",
]
_MODULES = {"Callback": "vlprobe.surfaces.notebook.callback"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'vlprobe' has no attribute '{name}'")
    module = importlib.import_module(_MODULES.get(name, "vlprobe.surfaces.notebook.interface"))
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
