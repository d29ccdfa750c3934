"""vlprobe against clip-benchmark 1.6.2 with the same pictures, weights and threads: `python benchmarks/peer.py`.

Both tools evaluate three tasks on 200 pictures with five captions each (COCO pictures if ../shared/data has them, else
drawn ones) with one checkpoint, a ViT-B-32 with weights from a seed, in fp32 on two threads: retrieval in both
directions, one true caption against one wrong one (as in SugarCrepe), and two pictures against two captions (as in
Winoground). Each tool runs as one command, as a user would type it, timed from start to end, including imports, loading
and digests, and with no cached results; the tools take turns. The script prints the median, minimum and maximum of the
seconds, the CPU seconds and the ratio in each repeat, and the largest difference between the 11 numbers that both tools
report. With random weights, the numbers only show that the tools agree.

The vlprobe command runs RoCOCO without alterations, and EqBen, on the three datasets. Unlike the peer, it also stores
every case and resamples every number a thousand times. Texts are the same as the peer's: without `normalise=false`,
RoCOCO would also lowercase foils and their captions, which the peer does not do. The model checks are left out, because
the peer has none.

    --pictures N    if N is larger than the number of pictures, add copies at 90 %, 80 % ... of the size, with captions
                    that end in "in picture N"
    --repeat N      [5]
    --threads N     [2]
    --idle          before each command, wait until other processes use at most .5 of a core; else repeat that turn
    --venv FOLDER   folder of the peer's environment; created on first use, which needs a package index
    --changes N     time the picture changes of the probe `pictures` at severity 3 on N pictures and one thread, and
                    nothing else; each next to torchvision's closest transform, if there is one
    --whole         also run three whole `vlprobe run`, with model checks, RoCOCO's altered captions and mixed pictures
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
from typing import TYPE_CHECKING

from PIL import Image
from startup import environment

if TYPE_CHECKING:
    import torch

COCO = Path(__file__).resolve().parents[2] / "shared" / "data" / "coco_real"
N = 200
MOST_BUSY = 0.5  # cores that other processes may use during a valid measurement
CLIP_BENCHMARK = "clip-benchmark 1.6.2"
SHARDS = 2
KS = (1, 5, 10)
MODEL = "ViT-B-32"
PEER = (
    "clip-benchmark==1.6.2",
    "requests",
    "datasets",
)  # the last two are imported, but not declared


def resized(jpeg: bytes, share: float) -> bytes:
    """Return a picture at the given share of its width and height."""
    picture = Image.open(io.BytesIO(jpeg)).convert("RGB")
    size = round(picture.width * share), round(picture.height * share)
    buffer = io.BytesIO()
    picture.resize(size).save(buffer, "JPEG", quality=92)
    return buffer.getvalue()


def install(venv: Path) -> Path:
    """Install the peer on first use, with vlprobe's versions of torch, numpy and OpenCLIP; return its command."""
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
    """Write a photograph, or its copy with a given number, to a folder; return its name and captions."""
    name, captions = shown[row]
    jpeg = (COCO / "val2017" / name).read_bytes()
    if copy:
        name, jpeg = f"{copy}{name}", resized(jpeg, 1 - 0.1 * copy)
        captions = [f"{caption.rstrip('.')} in picture {copy}." for caption in captions]
    (folder / name).write_bytes(jpeg)
    return name, captions


def pictures(folder: Path, count: int) -> list[tuple[str, list[str]]]:
    """Write the pictures to a folder, and return their names, each with five captions."""
    from vlprobe.datasets.world import items
    from vlprobe.datasets.world.renderer import render

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
    for number, row in enumerate(items.read("demo")[:count]):
        render(row.scenes[0]).resize((640, 480)).save(folder / f"{number:012d}.jpg")
        shown.append((f"{number:012d}.jpg", list(row.captions)))
    return shown


def material(work: Path, count: int) -> None:
    """Write the checkpoint, and the data for the three tasks in the format that each tool reads."""
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
    )  # Hugging Face's layout, which `datasets` reads like a download
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
    """Run a command with a number of threads; return its seconds and CPU seconds, including its child processes."""
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
    """Run all three tasks in one command of the peer, without cached data."""
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
    """Return the peer's metrics under vlprobe's names, without image_acc for one picture per row, which is always 1."""
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
    # The peer's image_acc counts captions that find their picture, as in Winoground.
    return numbers | {
        "pair text": wino["text_acc"],
        "pair image": wino["image_acc"],
        "pair group": wino["acc"],
    }


def datasets(work: Path) -> dict[str, str]:
    """Return vlprobe's dataset names for the three tasks."""
    crepe = work / "sugar_crepe-add_obj"
    return {
        "retrieval": f"coco:{crepe}",
        "foils": f"triplets:{crepe}/add_obj.json@{crepe}/val2017",
        "pairs": f"pairs:{crepe}/val2017/winoground.json",
    }


def ask_vlprobe(work: Path, threads: int) -> tuple[float, float]:
    """Run the same three tasks in one vlprobe command with an empty cache."""
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
    """Return vlprobe's stored metrics under the same names."""
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
    """Return how many cores other processes use, measured over three seconds."""
    import psutil

    return psutil.cpu_percent(interval=3) / 100 * (psutil.cpu_count() or 1)


def wait_for_others(minutes: float = 20) -> float:
    """Wait until other processes use at most MOST_BUSY cores; return how many they use then."""
    end = time.monotonic() + 60 * minutes
    while (busy := others_at_work()) > MOST_BUSY and time.monotonic() < end:
        time.sleep(5)
    return busy


def measured(
    sides: dict[str, Callable[[], tuple[float, float]]], repeat: int, is_idle: bool
) -> dict[str, list[tuple[float, float]]]:
    """Return the wall and CPU seconds for each side and repeat; the sides take turns."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    again = 3 * repeat if is_idle else 0  # repeats that may be repeated
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
    """Return the ratios of the peer's wall and CPU seconds to vlprobe's in one repeat."""
    return [peer / own for own, peer in zip(turn["vlprobe"], turn[CLIP_BENCHMARK], strict=True)]


def torchvision_changes() -> dict[str, Callable[["torch.Tensor"], object]]:
    """Return the transforms of torchvision that are closest to vlprobe's changes at severity 3, on uint8 tensors."""
    import torch
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import functional as change

    nearest = v2.InterpolationMode.NEAREST

    def pixelate(picture: torch.Tensor) -> torch.Tensor:
        height, width = picture.shape[-2:]
        small = change.resize(picture, [height // 5, width // 5])
        return change.resize(small, [height, width], nearest)

    def crop(picture: torch.Tensor) -> torch.Tensor:
        height, width = picture.shape[-2:]
        sides = [round(0.7 * height), round(0.7 * width)]
        return change.resized_crop(picture, 9, 9, *sides, [height, width])

    def noise(picture: torch.Tensor) -> torch.Tensor:
        values = change.to_dtype(picture, torch.float32, scale=True)
        return change.to_dtype(change.gaussian_noise(values, sigma=0.18), torch.uint8, scale=True)

    corners = [[0, 0], [639, 0], [639, 479], [0, 479]], [[60, 40], [600, 20], [580, 450], [30, 440]]
    return {
        "gaussian-noise": noise,
        "defocus-blur": lambda picture: change.gaussian_blur(picture, [13, 13]),
        "jpeg": lambda picture: change.jpeg(picture, 15),
        "pixelate": pixelate,
        "brightness": lambda picture: change.adjust_brightness(picture, 1.3),
        "contrast": lambda picture: change.adjust_contrast(picture, 0.2),
        "saturation": lambda picture: change.adjust_saturation(picture, 3.0),
        "grayscale": lambda picture: change.rgb_to_grayscale(picture, 3),
        "hue": lambda picture: change.adjust_hue(picture, 0.2),
        "rotation": lambda picture: change.rotate(picture, 15.0, v2.InterpolationMode.BILINEAR),
        "crop": crop,
        "flip": change.horizontal_flip,
        "perspective": lambda picture: change.perspective(picture, *corners),
        "occlusion": lambda picture: change.erase(
            picture, 60, 60, 215, 286, torch.full((3, 1, 1), 128, dtype=torch.uint8)
        ),
    }


def changes(count: int) -> None:
    """Print how many pictures one core changes in a CPU second, with vlprobe and torchvision taking turns."""
    import torch
    from torchvision.transforms.v2 import functional

    from vlprobe.perturb import picture_changes
    from vlprobe.types import PictureChange

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        names = [name for name, _ in pictures(Path(folder), count)]
        opened = [
            Image.open(Path(folder, name)).convert("RGB").resize((640, 480)) for name in names
        ]
    tensors = [functional.pil_to_tensor(image) for image in opened]
    theirs = torchvision_changes()
    print(f"{'pictures/s/core, 640 x 480':28}{'vlprobe':>9}{'torchvision':>13}{'ratio':>8}")
    ratios = []
    for kind in picture_changes.KINDS:
        change = PictureChange(kind, 3, 7, "umbrella" if kind.endswith("-word") else "")
        spent: list[tuple[float, float]] = []
        for image, tensor in zip(opened, tensors, strict=True):
            begun = time.process_time()
            picture_changes.apply(image, change)
            middle = time.process_time()
            if kind in theirs:
                theirs[kind](tensor)
            spent.append((middle - begun, time.process_time() - middle))
        ours, other = (statistics.median(column) for column in zip(*spent, strict=True))
        line = f"{kind:28}{1 / ours:9.0f}"
        if kind in theirs:
            ratios.append(statistics.median(second / first for first, second in spent))
            line += f"{1 / other:13.0f}{ratios[-1]:8.2f}"
        print(line)
    print(f"median of {len(ratios)} ratios: {statistics.median(ratios):.2f}")


def main() -> None:
    """Print one line per repeat and side, the ratios and the largest difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--venv", type=Path, default=Path(tempfile.gettempdir()) / "vlprobe-peer")
    parser.add_argument("--pictures", type=int, default=N)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--idle", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--changes", type=int, default=0)
    typed = parser.parse_args()
    if typed.changes:
        changes(typed.changes)
        return
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
    """Run three complete `vlprobe run` with an empty cache: RoCOCO with one policy and one mix, and eqben twice."""
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
