"""Model checks as a stage of a run: same outcomes as a separate `doctor`, with less work."""

import json
from pathlib import Path

import pytest
from PIL import Image

from vlprobe.models.controls import ControlEncoder
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store


@pytest.mark.parametrize("keeps", [True, False])
def test_the_model_checks_reuse_embeddings_of_the_run_and_have_the_same_outcomes(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, keeps: bool
):
    for number in range(40):
        Image.new("RGB", (8, 8), (6 * number, 99, 9)).save(tmp_path / f"{number}.png")
    rows = [f"{number}.png,a red ball and {number} cups" for number in range(40)]
    (tmp_path / "balls.csv").write_text("\n".join(["image,caption", *rows]), encoding="utf-8")
    dataset = f"csv:{tmp_path / 'balls.csv'}"
    fields = {"models": ("control:random",), "dataset": dataset, "probe": "lgip"}
    passed: list[int] = []
    real = ControlEncoder.encode_images
    monkeypatch.setattr(
        ControlEncoder, "encode_images", lambda self, pixels: passed.append(1) or real(self, pixels)
    )

    def examined(cache: Store, keep: bool) -> dict:
        for examine in (False, True):
            passed.clear()
            execute(Request(**fields, keep_embeddings=keep, examine=examine), cache)
        stored = json.loads(next(cache.root.glob("models/*.json")).read_text())
        return {name: stored[name] for name in ("passport", "checks", "erased")}

    kept = examined(store, keeps)
    calls = len(passed)
    # the pictures of one batch are stored; the second batch is smaller than a stored batch
    assert calls == 1 + 8 + 2 if keeps else calls == 2 + 8 + 2
    assert examined(Store(tmp_path / "other"), False) == kept
