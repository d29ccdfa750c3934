"""Captions a second on one core for the caption edits; run as `python benchmarks/perturb.py [FILE]`.

FILE is RoCOCO's coco_karpathy_test.json (a list of images with "caption"); without it a few made-up captions are used.
Time is CPU time of this process, best of three; the goals are those of the issue, for an idle machine.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from vlprobe.perturb import advanced, flips, lgip, strict, templates
from vlprobe.perturb.draws import draw, sample
from vlprobe.perturb.grammar import Sentence
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.perturb.tokens import Reading
from vlprobe.perturb.truths import truths

FILE = Path(__file__).parents[2] / "shared" / "data" / "rococo" / "coco_karpathy_test.json"
MADE_UP = [
    "A man riding an orange horse on a beach.",
    "Two dogs are sitting next to a large red couch.",
    "A kitchen with a white stove and two sinks.",
    "One person holds a cup while standing near a bus.",
    "a group of people standing around a table",
]

Images = list[tuple[str, list[str]]]


def paper(images: Images) -> None:
    """Six of the templates by hash, and the literal flips."""
    for name, captions in images:
        for index, caption in enumerate(captions):
            sample(templates.raw(caption), 6, draw(42, name, index, "paraphrases"))
            flips.literal(caption, name, index, 42)


def strict_flips(images: Images) -> None:
    """Careful flips, with the check against all captions of the image."""
    dropped: Counter[str] = Counter()
    for name, captions in images:
        readings = [Reading(caption) for caption in captions]
        known = truths(reading.lower for reading in readings)
        for index, reading in enumerate(readings):
            strict.flips(reading, known, name, index, 42, dropped)


def advanced_paraphrases(images: Images) -> None:
    """Every advanced paraphrase."""
    for _, captions in images:
        for caption in captions:
            advanced.paraphrases(Sentence(Reading(caption)))


def kind(name: str) -> Callable[[Images], None]:
    """Every change of one of our own kinds, with the check against all captions of the image."""

    def run(images: Images) -> None:
        for _, captions in images:
            readings = [Reading(caption) for caption in captions]
            for reading in readings:
                kind_edits.changes(name, Sentence(reading), readings)

    return run


def everything(rules: str) -> Callable[[Images], None]:
    """All that `edits` makes: paraphrases, flips and combined, sampled and tagged."""

    def run(images: Images) -> None:
        for name, captions in images:
            lgip.edits(captions, name, rules=rules)

    return run


TASKS = [
    ("templates + flips, paper", paper, "100,000"),
    ("flips, strict", strict_flips, "60,000"),
    ("advanced paraphrases", advanced_paraphrases, "20,000"),
    ("edits(), paper", everything("paper"), ""),
    ("edits(), strict", everything("strict"), ""),
    *((name, kind(name), "") for name in kind_edits.NAMES),
]


def main() -> None:
    """Prints one line per task."""
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    if file.exists():
        images = [
            (image["image"], image["caption"])
            for image in json.loads(file.read_text(encoding="utf-8"))[:2000]
        ]
    else:
        images = [(str(number), MADE_UP) for number in range(2000)]
    captions = sum(len(of_image) for _, of_image in images)
    print(f"{captions:,} captions of {len(images):,} images")
    print(f"{'task':28} {'captions/s':>12} {'goal':>10}")
    for name, task, goal in TASKS:
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            task(images)
            best = min(best, time.process_time() - start)
        print(f"{name:28} {captions / best:12,.0f} {goal:>10}")


if __name__ == "__main__":
    main()
