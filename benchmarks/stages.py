"""Where the time of a run goes: `python benchmarks/stages.py [--model NAME] [--dataset NAME] [--items N]`.

One real run, in an empty cache, with a clock around what it calls. Seconds are of the wall, each counted for the
innermost stage. What happens meanwhile in other threads (pictures read and decoded and, on a device, the model at work)
is summed over them, and is marked. The last line says for how much of the time from asking for embeddings to having
them the model was at work: a device that never waits has 100 %.
"""

import argparse
import functools
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

SPENT: Counter[str] = Counter()  # in the main thread, without the stages within
MEANWHILE: Counter[str] = Counter()  # in other threads, likewise
WHOLE: Counter[str] = Counter()  # with the stages within
MODEL = ("encode images", "encode texts")
_lock = threading.Lock()
_inside = threading.local()


def timed(owner: object, name: str, stage: str) -> None:
    """Puts a clock around a function; what a stage calls that has a clock of its own is not counted twice."""
    own: Callable = getattr(owner, name)

    @functools.wraps(own)
    def run(*given, **named):
        outer, _inside.spent = getattr(_inside, "spent", 0.0), 0.0
        started = time.perf_counter()
        try:
            return own(*given, **named)
        finally:
            took = time.perf_counter() - started
            at_home = threading.current_thread() is threading.main_thread()
            with _lock:
                (SPENT if at_home else MEANWHILE)[stage] += took - _inside.spent
                WHOLE[stage] += took
            _inside.spent = outer + took

    setattr(owner, name, run)


def main() -> None:
    """Prints one line a stage, the longest first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="demo:softmax")
    parser.add_argument("--dataset", default="demo")
    parser.add_argument("--probe", default="lgip")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0 leaves them to torch")
    asked = parser.parse_args()

    import torch

    from vlprobe import registry
    from vlprobe.runs import answers, case_workers, executor, questions
    from vlprobe.runs import request as runs_request
    from vlprobe.runs import run as runs_run
    from vlprobe.scoring import encoder, pictures, vectors
    from vlprobe.storage.entry import TableWriter
    from vlprobe.storage.store import Entry, Store

    if asked.threads:
        torch.set_num_threads(asked.threads)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        registry.load_dataset(
            asked.dataset, store.root
        )  # draws or indexes pictures, which no second run does again
        model = registry.load_model(asked.model, asked.device, asked.precision)
        probe = registry.load_probe(asked.probe)
        registry.load_model = lambda *_: model
        timed(registry, "load_dataset", "read the dataset")
        timed(pictures, "read", "read pictures")
        timed(encoder.Encoder, "_preprocess", "decode and preprocess")
        for name, stage in (
            ("encode_images", "encode images"),
            ("tokenize", "tokenize"),
            ("encode_texts", "encode texts"),
            ("encode_pictures", "encode images"),
            ("match", "match pairs"),
        ):
            if hasattr(model, name):
                timed(model, name, stage)
        timed(case_workers, "_make_chunk", "make edits")
        timed(questions.audit, "check", "check the data")
        timed(executor, "similarity_spread", "score")
        timed(encoder.Encoder, "images", "pictures")
        timed(encoder.Encoder, "texts", "texts")
        timed(vectors.VectorStore, "get", "keep embeddings")
        timed(vectors.VectorStore, "put", "keep embeddings")
        timed(vectors.VectorStore, "close", "keep embeddings")
        timed(answers.Judge, "add", "judge")
        timed(answers.Judge, "estimates", "judge")
        timed(answers.Judge, "sums", "judge")
        timed(TableWriter, "write", "write")
        timed(Entry, "write_part", "write")
        timed(Entry, "finish", "write")
        timed(Entry, "part", "read parts again")
        scorer = type(probe).scorer

        def scored(*given):
            score = scorer(*given)
            box = type("Box", (), {"score": staticmethod(score)})
            timed(box, "score", "score")
            return box.score

        type(probe).scorer = scored
        request = runs_request.Request(
            models=(asked.model,),
            dataset=asked.dataset,
            probe=asked.probe,
            limit=asked.items,
            device=asked.device,
            precision=asked.precision,
            batch_size=asked.batch_size,
            workers=asked.workers,
            examine=False,
        )
        started = time.perf_counter()
        manifest = runs_run.execute(request, store)[0]
        whole = time.perf_counter() - started
    print(
        f"{asked.model}, {asked.probe}: {manifest['n_items']:,} items, {manifest['n_cases']:,} cases"
    )
    print(f"whole run {whole:.1f} s, {manifest['n_cases'] / whole:,.0f} cases/s")
    for stage, seconds in SPENT.most_common():
        print(f"{stage:24} {seconds:8.2f} s  {seconds / whole:6.1%}")
    for stage, seconds in MEANWHILE.most_common():
        print(f"{stage:24} {seconds:8.2f} s  meanwhile")
    rest = whole - SPENT.total()
    print(f"{'the rest':24} {rest:8.2f} s  {rest / whole:6.1%}")
    busy, embedding = (
        sum(WHOLE[stage] for stage in stages) for stages in (MODEL, ("texts", "pictures"))
    )
    print(f"the model was at work for {busy / embedding:.0%} of texts and pictures")


if __name__ == "__main__":
    main()
