"""Text for cards that explain a metric: its symbol in the paper, and the worked example from the documentation.

The name, the explanation and the paper are part of the metric. The example is in `docs/numbers`, and a test computes it
with the metric.
"""

import functools
import html
import re

from vlprobe import registry
from vlprobe.storage.application import docs_folder
from vlprobe.types import Metric
from vlprobe.views.runs import metrics

SYMBOLS = {  # by metric; symbols that a label includes, such as R@1 and RSMS, are omitted
    "invariance_error": "E_inv",
    "sensitivity_gap": "E_sens",
    "positive_rate": "PR",
    "i2t_drop_rate": "DR",
    "t2i_drop_rate": "DR",
    "i2t_accuracy": "I2T",
    "t2t_accuracy": "T2T",
    "prsm_global": "global",
    **{f"prsm_local_{k}": f"local({k})" for k in (10, 100, 1000)},
}
ROW = re.compile(r"^\| `(\w[\w.]*)`(?:, (?:micro|k = 2))? \| `([^`]+)` \| (\S+) \|$", re.MULTILINE)


def heading(metric: Metric, *, is_html: bool = False) -> str:
    """Return a metric's label, with its symbol if it has one, in HTML with a subscript.

    >>> from vlprobe import registry
    >>> [heading(metric) for metric in registry.load_probe("lgip").metrics][:2]
    ['Invariance error (E_inv)', 'Erased paraphrases']
    """
    label, symbol = metric.label, SYMBOLS.get(metric.name, "")
    if is_html:
        label, symbol = html.escape(label), re.sub(r"_(\w+)", r"<sub>\1</sub>", symbol)
    return f"{label} ({symbol})" if symbol else label


def example(metric: Metric) -> str:
    """Return a metric's computation and value in its probe's worked example, or "" if the example does not include it.

    An example covers one search direction and uses one k for all top-k overlaps.

    >>> from vlprobe import registry
    >>> example(registry.load_probe("rococo").metrics[-1])
    '(0 + 1 + 0 + 1) / 4 = .500'
    """
    name = re.sub(r"^(prsm_local)_\d+$", r"\1_k", metric.name.replace("t2i_", "i2t_"))
    return _examples().get(name, "")


def formula_page(metric: Metric) -> str:
    """Return the path, without suffix, to the documentation page with the formula, or "" for a plug-in's metric."""
    return _formula_pages().get(metric.name, "")


@functools.cache  # the files are part of the installation
def _examples() -> dict[str, str]:
    pages = sorted((docs_folder() / "numbers").glob("*.md"))
    rows = [row for page in pages for row in ROW.findall(page.read_text(encoding="utf-8"))]
    return {name: f"{arithmetic} = {value}" for name, arithmetic, value in rows}


@functools.cache  # tables ask for it in every row
def _formula_pages() -> dict[str, str]:
    probes = [
        name
        for name in registry.names("probes")
        if (docs_folder() / f"numbers/{name}.md").is_file()
    ]
    return {metric: f"numbers/{probe}" for probe in probes for metric in metrics(probe)}
