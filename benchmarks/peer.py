"""vlprobe against clip-benchmark 1.6.2 on the same pictures, weights and threads: `python benchmarks/peer.py`.

Both answer three questions about 200 pictures with five captions each (COCO's where ../shared/data has them, else drawn
ones) with one checkpoint, a ViT-B-32 made from a seed, in fp32 on two threads (or `--threads`): retrieval in both
directions, one true caption against one wrong one (SugarCrepe's way), and two pictures against two captions
(Winoground's way). Each side is one process, from its start to its end, imports and loading included; they take turns,
`--repeat` times. The peer is asked all three in one command, which spares it two starts. Printed are seconds, CPU
seconds, the ratio of the medians, and the largest difference of the 11 numbers that both give. Random weights measure
nothing but that they agree. Where other work shares the cores, threads that wait for each other are counted as work:
one thread then tells more.

vlprobe's side is its public functions: an Encoder with a Gallery for retrieval, `runs.questions` and
`runs.answers` with the probe eqben for the rest, which also store every case and resample every number a thousand
times; the peer does
neither. The line "vlprobe run" is what a user gets from three `vlprobe run`, the doctor's checks and RoCOCO's altered
captions and mixed pictures included, for which there is no peer. It is left out with `--short`.

The peer lives in a virtual environment of its own (`--venv`), made on first use; that needs a package index.
"""

import argparse
import importlib.metadata
import itertools
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
from collections.abc import Sequence
from pathlib import Path

COCO = Path(__file__).resolve().parents[2] / "shared" / "data" / "coco_real"
N = 200
SHARDS = 2
KS = (1, 5, 10)
MODEL = "ViT-B-32"
PEER = (
    "clip-benchmark==1.6.2",
    "requests",
    "datasets",
)  # the last two it imports and does not declare


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


def pictures(folder: Path) -> list[tuple[str, list[str]]]:
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
        shown = [
            row for row in shown if len(row[1]) == 5 and (COCO / "val2017" / row[0]).is_file()
        ][:N]
        for name, _ in shown:
            shutil.copy(COCO / "val2017" / name, folder / name)
        return shown
    shown = []
    for number, scene in enumerate(distinct("test", N)):
        render(scene).resize((640, 480)).save(folder / f"{number:012d}.jpg")
        shown.append((f"{number:012d}.jpg", captions(scene, 5)))
    return shown


def material(work: Path) -> None:
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
    shown = pictures(images)
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
        command, cwd=work, env=os.environ | offline | limits, capture_output=True, text=True
    )
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{seconds:.1f} s: {' '.join(command)[:110]}", file=sys.stderr)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ask_peer(command: Path, work: Path, threads: int) -> tuple[float, float]:
    """All three questions in one command."""
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


def ours(work: Path) -> None:
    """The same three questions asked of vlprobe; prints the numbers as JSON."""
    import numpy as np

    from vlprobe import registry
    from vlprobe.runs import answers, context, questions
    from vlprobe.runs import request as runs_request
    from vlprobe.runs import run as runs_run
    from vlprobe.scoring.encoder import Encoder
    from vlprobe.scoring.gallery import Gallery
    from vlprobe.storage.store import Store

    store = Store(work / "cache")
    names, laps = datasets(work), {"start": time.perf_counter()}
    model = registry.load_model(f"openclip:{MODEL}@{work}/weights.pt", "cpu")
    laps["model"] = time.perf_counter()
    items = registry.load_dataset(names["retrieval"], store.root).items
    encoder = Encoder(model, store.root / "embeddings")
    seen = encoder.images([item.image for item in items])
    laps["pictures"] = time.perf_counter()
    read = encoder.texts([text for item in items for text in item.captions], keep=True)
    encoder.close()  # what it kept is on disk for the runs below
    laps["texts"] = time.perf_counter()
    owner = np.repeat(np.arange(len(items)), [len(item.captions) for item in items])
    sides = {
        "t2i": (read, owner, seen, np.arange(len(items))),
        "i2t": (seen, np.arange(len(items)), read, owner),
    }
    numbers = {}
    for side, (queries, asked, candidates, owned) in sides.items():
        ranks = []
        for block, scores in Gallery(candidates).similarities(queries):
            own = owned == asked[block, None]
            best = np.where(own, scores, -np.inf).max(axis=1, keepdims=True)
            ranks.append(1 + ((scores >= best) & ~own).sum(axis=1))
        numbers |= {f"{side} R@{k}": float((np.concatenate(ranks) <= k).mean()) for k in KS}
    probe = registry.load_probe("eqben")
    for kind in ("foils", "pairs"):
        data = registry.load_dataset(names[kind], store.root)
        request = runs_request.Request((model.name,), data.name, probe.name)
        run = runs_run.plan(model, data, probe, probe.defaults, request)
        run_context = context.RunContext(run, data.items, probe, request, store)
        progress = runs_request.Progress()
        questions.write_cases(
            run_context, (), questions.check_data(run_context, progress), progress
        )
        with runs_run.open_executor(run_context, model, progress) as executor:
            answers.answer(run_context, model, executor)
        found = store.run(run.key).table("estimates").to_pandas()
        found = found[(found["by"] == "all") & (found["averaging"] == "macro")].set_index("metric")[
            "value"
        ]
        if kind == "foils":
            numbers |= dict.fromkeys(("foil text", "foil"), float(found["foil_accuracy"]))
        else:
            numbers |= {
                f"pair {name}": float(found[f"{name}_score"]) for name in ("text", "image", "group")
            }
    laps["eqben"] = time.perf_counter()
    marks = list(laps.items())
    spent = {name: round(at - before, 2) for (_, before), (name, at) in itertools.pairwise(marks)}
    (work / "ours.json").write_text(json.dumps({"numbers": numbers, "spent": spent}))


def main() -> None:
    """Prints one line a side, the ratio and the largest difference."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--venv", type=Path, default=Path(tempfile.gettempdir()) / "vlprobe-peer")
    asked.add_argument("--repeat", type=int, default=1)
    asked.add_argument("--threads", type=int, default=2)
    asked.add_argument("--short", action="store_true", help="leave out three whole `vlprobe run`")
    asked.add_argument("--ours", type=Path, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.ours:
        ours(given.ours)
        return
    command = install(given.venv)
    with tempfile.TemporaryDirectory(prefix="vlprobe-peer-") as folder:
        work = Path(folder)
        material(work)
        spent: dict[str, list[tuple[float, float]]] = {
            "vlprobe": [],
            "clip-benchmark 1.6.2": [],
            "vlprobe run": [],
        }
        for _ in range(given.repeat):
            shutil.rmtree(work / "cache", ignore_errors=True)
            spent["vlprobe"].append(
                timed([sys.executable, __file__, "--ours", str(work)], work, given.threads)
            )
            spent["clip-benchmark 1.6.2"].append(ask_peer(command, work, given.threads))
            if not given.short:
                spent["vlprobe run"].append(whole(work, given.threads))
        mine, theirs = json.loads((work / "ours.json").read_text()), numbers_of_peer(work)
    print(f"{'':22}{'wall s':>9}{'CPU s':>9}   median of {given.repeat}, {given.threads} threads")
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in spent.items()
        if rows
    }
    for name, (wall, cpu) in medians.items():
        print(f"{name:22}{wall:9.1f}{cpu:9.1f}")
    ratios = [
        one / two
        for one, two in zip(medians["clip-benchmark 1.6.2"], medians["vlprobe"], strict=True)
    ]
    print(f"ratio: {ratios[0]:.2f} in seconds, {ratios[1]:.2f} in CPU seconds (goal 6)")
    difference = max(abs(mine["numbers"][name] - theirs[name]) for name in theirs)
    print(f"largest difference of {len(theirs)} numbers: {difference:.1e} (goal below 1e-4)")
    print("  ".join(f"{name} {value:.4f}" for name, value in mine["numbers"].items()))
    print(
        "vlprobe's seconds after its imports: "
        + ", ".join(f"{name} {s}" for name, s in mine["spent"].items())
    )


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
