"""Run settings that apply to any probe, each with a type, default, allowed values and help text."""

from typing import Any

from vlprobe.models import frozen
from vlprobe.models.endpoint.budget import AMOUNT, PRICE, PRICE_FORM
from vlprobe.runs.request import Request
from vlprobe.types.options import Option

EXECUTORS = ("local", "ray")
MIN_MEMORY = 256  # MiB: the minimum that a run uses, whatever its limit


def _setting(name: str, label: str, help: str, **bounds: Any) -> Option:
    """Create the option for a field of `Request`, with the field's default."""
    return Option(name=name, default=getattr(Request, name), label=label, help=help, **bounds)


SETTINGS = (
    _setting(
        "limit",
        label="First N pictures (0 = all)",
        help="After filtering and sampling, use only the first N items; 0 uses all items.",
        minimum=0,
    ),
    _setting(
        "sample",
        label="Random sample of N pictures (0 = all)",
        help="After filtering, draw N items at random, using the seed; 0 uses all items.",
        minimum=0,
    ),
    _setting(
        "item",
        label="Only these items",
        help="Use only the items with these ids, as shown on the case cards. Leave empty for "
        "all items.",
        pattern=".+",
        expected="the id of an item",
    ),
    _setting(
        "where",
        label="Only items with a tag",
        help="Use only items with this tag, such as subset=color. Values of the same tag are "
        "alternatives (OR); different tags must all match (AND). Leave empty for all "
        "items.",
        pattern="[^=]+=.*",
        expected="TAG=VALUE, such as subset=color",
    ),
    _setting(
        "without_tag",
        label="Exclude cases with these tags",
        help="Exclude cases with these tags, such as wrong label. Leave empty to exclude none.",
        pattern=".+",
        expected="the tag of a case",
    ),
    _setting(
        "without",
        label="Exclude these cases",
        help="Exclude the cases with these ids, as shown on the case cards. Leave empty to "
        "exclude none.",
        pattern=".+",
        expected="the id of a case",
    ),
    _setting(
        "seed",
        label="Seed",
        help="Seed for all random choices: the same seed gives the same question set.",
    ),
    _setting(
        "device",
        label="Device",
        help="Where the model runs: cpu, cuda, cuda:1, mps, or auto for the first of cuda, mps and cpu.",
        choices=("auto", "cpu", "cuda", "mps"),
        pattern="cuda:[0-9]{1,3}",
        expected="auto, cpu, cuda, cuda:N or mps",
    ),
    _setting(
        "precision",
        label="Precision",
        help="Floating-point precision; results with different precisions count as different models.",
        choices=frozen.PRECISIONS,
    ),
    _setting(
        "batch_size",
        label="Batch size",
        help="Number of pictures or texts per forward pass; affects speed and device memory.",
        minimum=1,
        maximum=65_536,
    ),
    _setting(
        "workers",
        label="Workers",
        help="Number of threads that decode pictures and of processes that edit captions.",
        minimum=1,
        maximum=1024,
    ),
    _setting(
        "memory",
        label="Memory limit (MiB)",
        help="Memory in MiB that a run may use in addition to the model's weights.",
        minimum=MIN_MEMORY,
    ),
    _setting(
        "keep_embeddings",
        label="Keep embeddings",
        help="Store embeddings so that later runs on the same pictures and texts are faster.",
    ),
    _setting(
        "examine",
        label="Run model checks",
        help="Run the model checks for each model, once per dataset.",
    ),
    _setting(
        "verify",
        label="Re-read every file",
        help="Compute the digests of all weights and pictures again instead of using cached digests.",
    ),
    _setting(
        "executor",
        label="Executor",
        help="Where to run: local (this machine) or ray (the machines of a Ray cluster).",
        choices=EXECUTORS,
    ),
    _setting(
        "price",
        label="Price per million tokens",
        help="Price per million tokens for a model on a server (http:): a single price (0.02), "
        "or separate prices for input and output (2.5/10).",
        pattern=f"|{PRICE.pattern}",
        expected=PRICE_FORM,
    ),
    _setting(
        "max_cost",
        label="Cost limit",
        help="Stop before a request that could exceed this total cost, in the currency of the "
        "price. To continue, start the run again.",
        pattern=f"|{AMOUNT.pattern}",
        expected="an amount such as 1.50",
    ),
)
