"""Invented answers of models by case, counted like those of a store and compared like on a page."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from vlprobe.types.presentation import KindPresentation
from vlprobe.views.paired_tests import PairedCells, PairedTests, from_cells
from vlprobe.views.records import RunRow

LIES = KindPresentation(label="A wrong word", lie="a wrong word", guess_held=0.5)
MARGINS = {"x": -0.1, "o": 0.1, "=": 0.0, "?": np.nan}  # fooled, not fooled, tied, no answer


def run_row(model: str, spread: float = 0.1) -> RunRow:
    zeros = {"n_items": 9, "n_units": 9, "n_cases": 9, "limit": 0, "seed": 42, "seconds": 1.0}
    texts = dict.fromkeys(("dataset", "probe", "options", "finished", "older", "note"), "")
    keys = {"key": f"key of {model}", "case_key": "", "dataset_digest": "d"}
    return RunRow(model=model, model_digest=model, spread=spread, **zeros, **texts, **keys)


def cases(pattern: Mapping[tuple[str, str], int], pictures: int = 0) -> pd.DataFrame:
    """Return one row per case: subtype, unit, and each model's margin as `margin_i`.

    Args:
        pattern: Numbers of cases by subtype and by the outcome of each model, a letter of MARGINS each.
        pictures: The number of pictures among which the cases are dealt in turn; 0: one picture per case.
    """
    rows = [
        (subtype, *(MARGINS[letter] for letter in letters))
        for (subtype, letters), count in pattern.items()
        for _ in range(count)
    ]
    n_models = len(next(iter(pattern))[1])
    columns = ["subtype", *(f"margin_{place}" for place in range(n_models))]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(unit=np.arange(len(table)) % (pictures or max(len(table), 1)))


def count(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the result of `paired_outcomes.unit_counts` by plain loops over the cases."""
    n_models = sum(name.startswith("margin_") for name in table)
    rows = []
    for (subtype, unit), group in table.groupby(["subtype", "unit"]):
        row = {"subtype": subtype, "unit": unit, "n_cases": len(group)}
        base = group["margin_0"]
        for place in range(n_models):
            margin = group[f"margin_{place}"]
            answered = margin.dropna()
            row[f"answered_{place}"] = len(answered)
            row[f"fooled_{place}"] = sum(value <= 0 for value in answered)
            row[f"fooled_cases_{place}"] = row[f"fooled_{place}"]
            row[f"tied_{place}"] = sum(value == 0 for value in answered)
            row[f"moved_{place}"] = -sum(answered)
            pairs = [
                (one, two)
                for one, two in zip(base, margin, strict=True)
                if not np.isnan(one) and not np.isnan(two)
            ]
            if place:
                row[f"both_fooled_{place}"] = sum(one <= 0 and two <= 0 for one, two in pairs)
                row[f"only_first_{place}"] = sum(one <= 0 < two for one, two in pairs)
                row[f"only_second_{place}"] = sum(two <= 0 < one for one, two in pairs)
                row[f"both_held_{place}"] = sum(one > 0 and two > 0 for one, two in pairs)
                row[f"both_{place}"] = len(pairs)
                row[f"base_believes_{place}"] = sum(one <= 0 for one, _ in pairs)
                row[f"model_believes_{place}"] = sum(two <= 0 for _, two in pairs)
                row[f"base_moved_{place}"] = -sum(one for one, _ in pairs)
                row[f"model_moved_{place}"] = -sum(two for _, two in pairs)
        rows.append(row)
    return pd.DataFrame(rows)


def counts_of(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the columns of `count`."""
    return {str(name): column.to_numpy() for name, column in count(table).items()}


def scene(
    pattern: Mapping[tuple[str, str], int],
    models: Sequence[str],
    *,
    pictures: int = 0,
    kind: KindPresentation = LIES,
    unfit: Sequence[str] = (),
) -> PairedTests:
    """Return the comparison of these models."""
    table = cases(pattern, pictures)
    runs = [run_row(model) for model in models]
    digests = {(model, "d") for model in unfit}
    return from_cells(PairedCells(counts_of(table), runs, kind, "cosine"), "flip", digests)
