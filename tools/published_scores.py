"""Store the published scores of ALBEF, BLIP, BLIP-2 and X-VLM on VALSE and Winoground in a cache, and print metrics.

    python tools/published_scores.py DATA [--cache CACHE]

DATA contains `scores/` (winoground_*.jsonl and valse_*.csv from e-bug/fine-grained-evals), `valse/` (VALSE's files) and
COCO pictures in `coco_real/val2017`, as far as available. Winoground's texts and pictures may not be redistributed, so
placeholder texts ("Winoground 7, caption 0") are used if DATA has no `winoground.jsonl`. The script prints each model's
metrics in percent next to the values published by others.
"""

import argparse
import json
from pathlib import Path

import click

from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import DEFAULT, Store

NAMES = {
    "albef_14m": "ALBEF",
    "blip_129m": "BLIP",
    "blip2_itm_pretrain": "BLIP-2",
    "x-vlm_16m": "X-VLM",
}
METRICS = {
    "winoground": ("text_score", "image_score", "group_score"),
    "valse": ("foil_accuracy", "caption_accepted", "foil_rejected"),
}
PUBLISHED = {
    "winoground": ((32.75, 16.5, 12.5), (35.5, 15.0, 11.75), (43.0, 22.0, 18.25), (46.75, 24.5, 21.25)),
    "valse": ((69.44, 62.49, 47.38), (68.81, 68.58, 38.22), (74.05, 51.14, 62.63), (74.5, 69.2, 51.26)),
}  # fmt: skip


def stand_ins(folder: Path) -> Path:
    """Write placeholder texts for Winoground's 400 pairs, which are identified only by number."""
    rows = [
        {
            "id": number,
            **{f"image_{side}": f"ex_{number}_img_{side}" for side in (0, 1)},
            **{f"caption_{side}": f"Winoground {number}, caption {side}" for side in (0, 1)},
        }
        for number in range(400)
    ]
    file = folder / "winoground.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def main() -> None:
    """Store all runs that are not stored yet, and print their metrics."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", default=DEFAULT)
    arguments = parser.parse_args()
    store, data = Store(arguments.cache), arguments.data.resolve()
    real = data / "winoground.jsonl"
    winoground = real if real.exists() else stand_ins(store.root.resolve() / "published")
    datasets = {
        "winoground": f"pairs:{winoground}+unpictured",
        "valse": f"pairs:{data}/valse@{data}/coco_real/val2017+unpictured",
    }
    for task, dataset in datasets.items():
        suffix = "jsonl" if task == "winoground" else "csv"
        models = [
            f"scores:{data}/scores/{task}_{file}.{suffix}+probability+as={name}"
            for file, name in NAMES.items()
        ]
        manifests = execute(Request(tuple(models), dataset, "eqben"), store)
        for name, manifest, published in zip(
            NAMES.values(), manifests, PUBLISHED[task], strict=True
        ):
            rows = store.run(manifest["key"]).table("estimates").to_pylist()
            value = {row["metric"]: row["value"] for row in rows if row["by"] == "all"}
            for metric, expected in zip(METRICS[task], published, strict=True):
                click.echo(
                    f"{task:10} {name:7} {metric:17} {100 * value[metric]:6.2f} {expected:6.2f}"
                )


if __name__ == "__main__":
    main()
