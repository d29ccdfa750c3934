"""vlprobe against clip-benchmark 1.6.2 on the same pictures, weights and threads: `python benchmarks/peer.py`.

Both answer three questions about 200 pictures with five captions each (COCO's where ../shared/data has them, else drawn
ones) with one checkpoint, a ViT-B-32 made from a seed, in fp32 on two threads: retrieval in both directions, one true
caption against one wrong one (SugarCrepe's way), and two pictures against two captions (Winoground's way). Each side is
one command as a user types it, from its start to its end, imports, loading and digests included, nothing remembered
from an earlier one; they take turns. Printed are the median, the least and the most of seconds and CPU seconds and of
their ratio in each repeat, and the largest difference of the 11 numbers that both give. Random weights measure nothing
but that they agree.

vlprobe's command asks RoCOCO without alterations, and EqBen, about the three datasets: it also stores every case and
resamples every number a thousand times; the peer does neither. Texts are as the peer has them: without
`normalise=false` RoCOCO would ask about foils and their captions in lower case too, which no question of the peer has.
The doctor, for which there is no peer, is left out.

    --pictures N    beyond those there are, copies at 90 %, 80 % ... of the size whose captions end in "in picture N"
    --repeat N      [5]
    --threads N     [2]
    --idle          before each command wait until others use at most .5 of a core; where not, do that repeat again
    --venv FOLDER   where the peer lives; made on first use, which needs a package index
    --whole         also three whole `vlprobe run`: the doctor, RoCOCO's altered captions and mixed pictures
"""

import argparse
import importlib.metadata
import io
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from PIL import Image
from startup import environment

COCO = Path(__file__).resolve().parents[2] / "shared" / "data" / "coco_real"
N = 200
MOST_BUSY = 0.5  # cores that others use where a clock is believed
CLIP_BENCHMARK = "clip-benchmark 1.6.2"
SHARDS = 2
KS = (1, 5, 10)
MODEL = "ViT-B-32"
PEER = (
    "clip-benchmark==1.6.2",
    "requests",
    "datasets",
)  # the last two it imports and does not declare


def resized(jpeg: bytes, share: float) -> bytes:
    """The picture at this share of its width and height."""
    picture = Image.open(io.BytesIO(jpeg)).convert("RGB")
    size = round(picture.width * share), round(picture.height * share)
    buffer = io.BytesIO()
    picture.resize(size).save(buffer, "JPEG", quality=92)
    return buffer.getvalue()


def install(venv: Path) -> Path:
    """The peer's command, installed on first use with the same torch, numpy and OpenCLIP as vlprobe has."""
    command = venv / "bin" / "clip_benchmark"
    if not command.exists():
        print(f"Installing {PEER[0]} into {venv}")
        same = [
            f"{name}=={importlib.metadata.version(name)}"
            for name in ("torch", "numpy", "open_clip_torch")
        ]
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin" / "pip"), "install", "-q", *PEER, *same], check=True)
    return command


def copied(
    folder: Path, copy: int, row: int, shown: Sequence[tuple[str, list[str]]]
) -> tuple[str, list[str]]:
    """Puts a photograph, or its copy of that number, into the folder; its name and captions."""
    name, captions = shown[row]
    jpeg = (COCO / "val2017" / name).read_bytes()
    if copy:
        name, jpeg = f"{copy}{name}", resized(jpeg, 1 - 0.1 * copy)
        captions = [f"{caption.rstrip('.')} in picture {copy}." for caption in captions]
    (folder / name).write_bytes(jpeg)
    return name, captions


def pictures(folder: Path, count: int) -> list[tuple[str, list[str]]]:
    """Puts the pictures into the folder; returns their names, each with five captions."""
    from vlprobe.datasets.world.captions import captions
    from vlprobe.datasets.world.renderer import render
    from vlprobe.datasets.world.scene import distinct

    if (COCO / "annotations").is_dir():
        content = json.loads((COCO / "annotations" / "captions_val2017.json").read_bytes())
        written: dict[int, list[str]] = {}
        for annotation in content["annotations"]:
            written.setdefault(annotation["image_id"], []).append(
                " ".join(annotation["caption"].split())
            )
        shown = [
            (image["file_name"], written.get(image["id"], [])[:5]) for image in content["images"]
        ]
        shown = [row for row in shown if len(row[1]) == 5 and (COCO / "val2017" / row[0]).is_file()]
        return [copied(folder, *divmod(number, len(shown)), shown) for number in range(count)]
    shown = []
    for number, scene in enumerate(distinct("test", count)):
        render(scene).resize((640, 480)).save(folder / f"{number:012d}.jpg")
        shown.append((f"{number:012d}.jpg", captions(scene, 5)))
    return shown


def material(work: Path, count: int) -> None:
    """Writes the checkpoint, and the three questions as each side reads them."""
    import open_clip
    import pyarrow as pa
    import pyarrow.parquet as pq
    import torch

    torch.manual_seed(0)
    torch.save(open_clip.create_model(MODEL, load_weights=False).state_dict(), work / "weights.pt")
    crepe = work / "sugar_crepe-add_obj"
    images = crepe / "val2017"
    images.mkdir(parents=True)
    shown = pictures(images, count)
    coco = {"images": [], "annotations": []}
    for number, (name, captions) in enumerate(shown):
        coco["images"].append({"id": number, "file_name": name, "width": 640, "height": 480})
        coco["annotations"] += [
            {"id": 5 * number + place, "image_id": number, "caption": text}
            for place, text in enumerate(captions)
        ]
    (crepe / "annotations").mkdir()
    (crepe / "annotations" / "captions_val2017.json").write_text(json.dumps(coco))
    rows = {}
    for number, (name, captions) in enumerate(shown):
        first, *middle, last = captions[0].split()
        wrong = " ".join([last, *middle, first])
        rows[str(number)] = {"filename": name, "caption": captions[0], "negative_caption": wrong}
    (crepe / "add_obj.json").write_text(json.dumps(rows))
    shards = work / "mscoco_captions" / "test"
    shards.mkdir(parents=True)
    half = len(shown) // SHARDS
    for shard in range(SHARDS):
        with tarfile.open(shards / f"{shard}.tar", "w") as tar:
            for name, captions in shown[shard * half : (shard + 1) * half]:
                text = images / f"{Path(name).stem}.txt"
                text.write_text("\n".join(captions))
                tar.add(images / name, name)
                tar.add(text, text.name)
                text.unlink()
    (shards / "nshards.txt").write_text(str(SHARDS))
    (shards.parent / "dataset_type.txt").write_text("retrieval")
    pairs = [
        {"image_0": one[0], "image_1": two[0], "caption_0": one[1][0], "caption_1": two[1][0]}
        for one, two in zip(shown[::2], shown[1::2], strict=True)
    ]
    (images / "winoground.json").write_text(json.dumps(pairs))
    data = (
        work / "facebook" / "winoground" / "data"
    )  # Hugging Face's layout, which `datasets` reads as if downloaded
    data.mkdir(parents=True)
    kept = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = {
        name: pa.array(
            [{"bytes": (images / pair[name]).read_bytes(), "path": pair[name]} for pair in pairs],
            kept,
        )
        if name.startswith("image")
        else pa.array([pair[name] for pair in pairs])
        for name in pairs[0]
    }
    features = {
        name: {"_type": "Image"}
        if name.startswith("image")
        else {"dtype": "string", "_type": "Value"}
        for name in columns
    }
    said = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(
        pa.table(columns).replace_schema_metadata(said), data / "test-00000-of-00001.parquet"
    )


def timed(command: Sequence[str], work: Path, threads: int) -> tuple[float, float]:
    """Runs a command on so many threads; its seconds and CPU seconds, those of its children included."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(work / "hf"), "TQDM_DISABLE": "1"}
    limits = dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)
    )
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, cwd=work, env=environment(**offline, **limits), capture_output=True, text=True
    )
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{seconds:.1f} s: {' '.join(command)[:110]}", file=sys.stderr)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ask_peer(command: Path, work: Path, threads: int) -> tuple[float, float]:
    """All three questions in one command, which has read nothing before."""
    shutil.rmtree(work / "hf", ignore_errors=True)
    given = [
        str(command),
        "eval",
        "--dataset",
        "wds/mscoco_captions",
        "sugar_crepe/add_obj",
        "winoground",
    ]
    given += [
        "--dataset_root",
        f"{work}/{{dataset_cleaned}}",
        "--model",
        MODEL,
        "--pretrained",
        f"{work}/weights.pt",
    ]
    given += [
        "--no_amp",
        "--num_workers",
        str(min(threads, SHARDS)),
        "--batch_size",
        "64",
        "--recall_k",
        *map(str, KS),
    ]
    return timed([*given, "--output", f"{work}/peer_{{dataset}}.json"], work, threads)


def numbers_of_peer(work: Path) -> dict[str, float]:
    """What the peer found, under our names; its image_acc of one picture a row is 1 for any model and left out."""
    found = {
        name: json.loads((work / f"peer_{name}.json").read_text())["metrics"]
        for name in ("mscoco_captions", "sugar_crepe_add_obj", "winoground")
    }
    numbers = {f"t2i R@{k}": found["mscoco_captions"][f"image_retrieval_recall@{k}"] for k in KS}
    numbers |= {f"i2t R@{k}": found["mscoco_captions"][f"text_retrieval_recall@{k}"] for k in KS}
    numbers |= {
        "foil text": found["sugar_crepe_add_obj"]["text_acc"],
        "foil": found["sugar_crepe_add_obj"]["acc"],
    }
    wino = found["winoground"]
    # In the peer's words the image is right where each caption finds its picture, as in Winoground.
    return numbers | {
        "pair text": wino["text_acc"],
        "pair image": wino["image_acc"],
        "pair group": wino["acc"],
    }


def datasets(work: Path) -> dict[str, str]:
    """The three questions as vlprobe names them."""
    crepe = work / "sugar_crepe-add_obj"
    return {
        "retrieval": f"coco:{crepe}",
        "foils": f"triplets:{crepe}/add_obj.json@{crepe}/val2017",
        "pairs": f"pairs:{crepe}/val2017/winoground.json",
    }


def ask_vlprobe(work: Path, threads: int) -> tuple[float, float]:
    """The same three questions in one command, into an empty cache."""
    shutil.rmtree(work / "cache", ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "vlprobe",
        "--cache",
        str(work / "cache"),
        "run",
        "--no-doctor",
    ]
    command += ["--model", f"openclip:{MODEL}@{work}/weights.pt", "--device", "cpu"]
    command += ["--threads", str(threads), "--probe", "rococo", "--probe", "eqben"]
    command += ["--option", "policies=", "--option", "pictures=", "--option", "normalise=false"]
    for name in datasets(work).values():
        command += ["--dataset", name]
    return timed(command, work, threads)


def numbers_of_vlprobe(work: Path) -> dict[str, float]:
    """What vlprobe stored, under the same names."""
    from vlprobe.storage.store import Store

    store, stored = Store(work / "cache"), {}
    for manifest in store.runs():
        table = store.run(manifest["key"]).table("estimates").to_pandas()
        whole_table = table[(table["by"] == "all") & (table["averaging"] == "macro")]
        values = whole_table.set_index("metric")["value"].to_dict()
        stored[manifest["run"]["dataset"], manifest["run"]["probe"]] = values
    names = datasets(work)
    retrieval = stored[names["retrieval"], "rococo"]
    foils, pairs = (stored[names[kind], "eqben"] for kind in ("foils", "pairs"))
    numbers = {f"{side} R@{k}": retrieval[f"{side}_r{k}"] for side in ("t2i", "i2t") for k in KS}
    numbers |= dict.fromkeys(("foil text", "foil"), foils["foil_accuracy"])
    return numbers | {f"pair {side}": pairs[f"{side}_score"] for side in ("text", "image", "group")}


def others_at_work() -> float:
    """Cores that other processes use, over three seconds."""
    import psutil

    return psutil.cpu_percent(interval=3) / 100 * (psutil.cpu_count() or 1)


def wait_for_others(minutes: float = 20) -> float:
    """Waits until others use at most MOST_BUSY cores; how many they use then."""
    end = time.monotonic() + 60 * minutes
    while (busy := others_at_work()) > MOST_BUSY and time.monotonic() < end:
        time.sleep(5)
    return busy


def measured(
    sides: dict[str, Callable[[], tuple[float, float]]], repeat: int, is_idle: bool
) -> dict[str, list[tuple[float, float]]]:
    """Wall and CPU seconds of each side and repeat; the sides take turns."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    again = 3 * repeat if is_idle else 0  # repeats that may be done again
    while min(map(len, spent.values())) < repeat:
        turn, busy = {}, []
        for name, ask in sides.items():
            busy.append(wait_for_others() if is_idle else others_at_work())
            turn[name] = ask()
        line = ", ".join(f"{name} {wall:.1f} s {cpu:.1f} CPU" for name, (wall, cpu) in turn.items())
        is_busy = max(busy) > MOST_BUSY
        load = f"others used {', '.join(f'{cores:.2f}' for cores in busy)} cores before"
        ratio = " and ".join(f"{value:.2f}" for value in quotients(turn))
        print(
            f"{line}; ratio {ratio}; load {os.getloadavg()[0]:.2f}, {load}{' (BUSY)' * is_busy}",
            flush=True,
        )
        if is_busy and again > 0:
            again -= 1
            continue
        for name, seconds in turn.items():
            spent[name].append(seconds)
    return spent


def quotients(turn: dict[str, tuple[float, float]]) -> list[float]:
    """How many times the peer's wall and CPU seconds are ours, in one repeat."""
    return [peer / own for own, peer in zip(turn["vlprobe"], turn[CLIP_BENCHMARK], strict=True)]


def main() -> None:
    """Prints one line a repeat and side, the ratio and the largest difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--venv", type=Path, default=Path(tempfile.gettempdir()) / "vlprobe-peer")
    parser.add_argument("--pictures", type=int, default=N)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--idle", action="store_true")
    parser.add_argument("--whole", action="store_true")
    typed = parser.parse_args()
    command = install(typed.venv)
    with tempfile.TemporaryDirectory(prefix="vlprobe-peer-") as folder:
        work = Path(folder)
        material(work, typed.pictures)
        sides = {
            "vlprobe": lambda: ask_vlprobe(work, typed.threads),
            CLIP_BENCHMARK: lambda: ask_peer(command, work, typed.threads),
        }
        if typed.whole:
            sides["vlprobe, whole"] = lambda: whole(work, typed.threads)
        spent = measured(sides, typed.repeat, typed.idle)
        mine, theirs = numbers_of_vlprobe(work), numbers_of_peer(work)
    print(f"{'':22}{'wall s':>9}{'least':>8}{'most':>8}{'CPU s':>9}{'least':>8}{'most':>8}")
    for name, rows in spent.items():
        columns = list(zip(*rows, strict=True))
        cells = [f"{statistics.median(c):9.1f}{min(c):8.1f}{max(c):8.1f}" for c in columns]
        print(f"{name:22}{''.join(cells)}   {len(rows)} times, {typed.threads} threads")
    turns = [dict(zip(spent, turn, strict=True)) for turn in zip(*spent.values(), strict=True)]
    goal = 8 if typed.pictures >= 1000 else 7
    for clock, ratios in zip(
        ("seconds", "CPU seconds"), zip(*map(quotients, turns), strict=True), strict=True
    ):
        print(
            f"ratio in {clock}: {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f}, goal {goal})"
        )
    difference = max(abs(mine[name] - theirs[name]) for name in theirs)
    print(f"largest difference of {len(theirs)} numbers: {difference:.1e} (goal 1e-6)")
    print("  ".join(f"{name} {value:.4f}" for name, value in mine.items()))


def whole(work: Path, threads: int) -> tuple[float, float]:
    """Three `vlprobe run` of a user, into an empty cache: RoCOCO with one policy and one mix, and eqben twice."""
    shutil.rmtree(work / "whole", ignore_errors=True)
    vlprobe = [
        sys.executable,
        "-m",
        "vlprobe",
        "--cache",
        str(work / "whole"),
        "run",
        "--device",
        "cpu",
    ]
    vlprobe += ["--model", f"openclip:{MODEL}@{work}/weights.pt"]
    options = [
        "--option",
        "policies=rand-voca",
        "--option",
        "pictures=mix:0.9",
        "--option",
        "picture_seeds=42",
    ]
    total = (0.0, 0.0)
    for kind, name in datasets(work).items():
        probe = ["--probe", "rococo", *options] if kind == "retrieval" else ["--probe", "eqben"]
        one = timed([*vlprobe, "--dataset", name, *probe], work, threads)
        total = (total[0] + one[0], total[1] + one[1])
    return total


if __name__ == "__main__":
    main()
