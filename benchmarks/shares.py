"""What share of a run the doctor and the intervals take: `python benchmarks/shares.py`.

One `vlprobe run --profile` of an untrained openclip:ViT-B-32 (random weights of a fixed seed) in a
process and an empty cache of its own, over the photographs of ../shared/data/coco_real with five
captions each; where more are asked for than there are, copies at 90 %, 80 % ... of the size whose
captions end in "in picture N". Printed are the profile, and the shares of both in wall and CPU
seconds: on a busy machine only the latter count.

    --items N       pictures [500]
    --probe NAME    [lgip]
    --code FOLDER   of another checkout, to compare with
"""

import argparse
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from servers import ROOT, environment

COCO = ROOT.parent / "shared" / "data" / "coco_real"
GOAL = 0.05
STAGES = ("doctor", "judge, intervals, write")


def photographs(folder: Path, n_items: int) -> None:
    """Writes so many photographs with their captions, as COCO has them."""
    content = json.loads((COCO / "annotations" / "captions_val2017.json").read_bytes())
    captions_of: dict[int, list[str]] = {}
    for annotation in content["annotations"]:
        captions_of.setdefault(annotation["image_id"], []).append(annotation["caption"].strip())
    (folder / "val2017").mkdir(parents=True)
    (folder / "annotations").mkdir()
    images, annotations = [], []
    for number in range(n_items):
        copy, place = divmod(number, len(content["images"]))
        image = content["images"][place]
        name = f"{number:012d}.jpg"
        jpeg = (COCO / "val2017" / image["file_name"]).read_bytes()
        (folder / "val2017" / name).write_bytes(resized(jpeg, 1 - 0.1 * copy) if copy else jpeg)
        images.append({**image, "id": number, "file_name": name})
        for caption in captions_of[image["id"]][:5]:
            text = f"{caption.rstrip('.')} in picture {copy}." if copy else caption
            annotations.append({"id": len(annotations), "image_id": number, "caption": text})
    described = {"images": images, "annotations": annotations}
    (folder / "annotations" / "captions_val2017.json").write_text(json.dumps(described))


def resized(jpeg: bytes, share: float) -> bytes:
    """The picture at this share of its width and height."""
    picture = Image.open(io.BytesIO(jpeg)).convert("RGB")
    size = round(picture.width * share), round(picture.height * share)
    buffer = io.BytesIO()
    picture.resize(size).save(buffer, "JPEG", quality=92)
    return buffer.getvalue()


def profiled(code: Path, dataset: Path, cache: Path, probe: str) -> dict[str, tuple[float, float]]:
    """Wall and CPU seconds of each stage of a run, and of all."""
    words = ["run", "--model", "openclip:ViT-B-32", "--dataset", f"coco:{dataset}"]
    words += ["--probe", probe, "--profile"]
    ended = subprocess.run(
        [sys.executable, "-m", "vlprobe", "--cache", str(cache), *words],
        cwd=code,
        env=environment(PYTHONPATH=str(code)),
        check=True,
        capture_output=True,
        text=True,
    )
    _, _, table = ended.stderr.partition("\nstage ")
    print(f"stage {table.rstrip()}")
    rows = {line[:26].strip(): line[26:].split() for line in table.splitlines()[1:]}
    return {name: (float(row[0]), float(row[2])) for name, row in rows.items()}


def main() -> None:
    """Prints the profile and a line a stage."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--probe", default="lgip")
    parser.add_argument("--code", type=Path, default=ROOT)
    typed = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vlprobe-shares-") as folder:
        photographs(Path(folder) / "photographs", typed.items)
        seconds = profiled(
            typed.code, Path(folder) / "photographs", Path(folder) / "cache", typed.probe
        )
    both = [sum(seconds[name][clock] for name in STAGES) for clock in (0, 1)]
    for name, spent in [*((name, seconds[name]) for name in STAGES), ("both", both)]:
        wall, cpu = (spent[clock] / seconds["all"][clock] for clock in (0, 1))
        print(f"{name:26}{wall:7.1%} of the wall's, {cpu:6.1%} of CPU seconds (goal {GOAL:.0%})")


if __name__ == "__main__":
    main()
