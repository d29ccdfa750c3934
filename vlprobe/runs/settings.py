"""The settings of a run with any probe: type, default, allowed values and help of each."""

from vlprobe.models import frozen
from vlprobe.models.endpoint.budget import AMOUNT, PRICE, PRICE_FORM
from vlprobe.runs import ray_cluster
from vlprobe.runs.request import Request
from vlprobe.types.options import Option

EXECUTORS = ("local", "ray")
MIN_MEMORY = 256  # MiB: the minimum that a run uses, whatever its limit

SETTINGS = (
    Option(
        name="limit",
        default=Request.limit,
        label="Only the first pictures, 0: all",
        help="So many items of the dataset, from its beginning.",
        minimum=0,
    ),
    Option(
        name="sample",
        default=Request.sample,
        label="Pictures drawn at random, 0: all",
        help="So many items of those that the fields below leave, drawn by the seed; the limit counts these.",
        minimum=0,
    ),
    Option(
        name="item",
        default=Request.item,
        label="Only these items",
        help="By their ids, as the cards of a case name them; none: every item.",
        pattern=".+",
        expected="the id of an item",
    ),
    Option(
        name="where",
        default=Request.where,
        label="Only items with a tag",
        help="TAG=VALUE, such as subset=color. Values of one tag widen it, several tags narrow it; none: every item.",
        pattern="[^=]+=.*",
        expected="TAG=VALUE, such as subset=color",
    ),
    Option(
        name="without_tag",
        default=Request.without_tag,
        label="Without cases that people tagged",
        help="Such as wrong label: cases of these questions that have the tag are left out. None: every case is used.",
        pattern=".+",
        expected="a tag that cases were given",
    ),
    Option(
        name="without",
        default=Request.without,
        label="Without these cases",
        help="By their ids, as cards name them; none: every case is used.",
        pattern=".+",
        expected="the id of a case",
    ),
    Option(
        name="seed",
        default=Request.seed,
        label="Seed",
        help="Of every draw: the same seed makes the same questions.",
    ),
    Option(
        name="device",
        default=Request.device,
        label="Device",
        help="auto takes cuda, then mps, then cpu.",
        choices=("auto", "cpu", "cuda", "mps"),
        pattern="cuda:[0-9]{1,3}",
        expected="auto, cpu, cuda, cuda:N or mps",
    ),
    Option(
        name="precision",
        default=Request.precision,
        label="Precision",
        help="Of the model's arithmetic; another one is another model to all results.",
        choices=frozen.PRECISIONS,
    ),
    Option(
        name="batch_size",
        default=Request.batch_size,
        label="Batch size",
        help="Pictures or texts that a model embeds at once: changes the speed, and the memory of the device.",
        minimum=1,
        maximum=65_536,
    ),
    Option(
        name="workers",
        default=Request.workers,
        label="Workers",
        help="Threads that open pictures, processes that edit captions.",
        minimum=1,
        maximum=1024,
    ),
    Option(
        name="memory",
        default=Request.memory,
        label="Memory in MiB",
        help="Memory limit of a run, without the model's weights.",
        minimum=MIN_MEMORY,
    ),
    Option(
        name="keep_embeddings",
        default=Request.keep_embeddings,
        label="Keep embeddings",
        help="Later runs over the same pictures and texts are then faster.",
    ),
    Option(
        name="examine",
        default=Request.examine,
        label="Examine the models",
        help="Puts each model to the checks that a healthy model passes, once for each dataset.",
    ),
    Option(
        name="verify",
        default=Request.verify,
        label="Read all files",
        help="Weights and pictures too whose digests are remembered from an earlier run.",
    ),
    Option(
        name="executor",
        default=Request.executor,
        label="Runs on",
        help="local: this machine; ray: the machines of a Ray cluster.",
        choices=EXECUTORS,
    ),
    Option(
        name="ray_address",
        default=Request.ray_address,
        label="Address of the Ray cluster",
        help="HOST:PORT; empty: a new cluster on this machine.",
        pattern=f"|local|{ray_cluster.ADDRESS.pattern}",
        expected="HOST:PORT",
    ),
    Option(
        name="price",
        default=Request.price,
        label="Price of a million tokens",
        help="For models on a server (http:). One price: 0.02; one for tokens sent, one for tokens received: 2.5/10.",
        pattern=f"|{PRICE.pattern}",
        expected=PRICE_FORM,
    ),
    Option(
        name="max_cost",
        default=Request.max_cost,
        label="Stop at this cost",
        help="In the money of the price: the run stops before a request that could exceed it, and goes on later.",
        pattern=f"|{AMOUNT.pattern}",
        expected="an amount such as 1.50",
    ),
)
