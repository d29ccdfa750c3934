"""Image-text matching heads of transformers: hf-itm:OWNER/NAME from the hub, hf-itm:FOLDER from a
disk.

A head looks at a picture and a text together. Those of BLIP, BLIP-2, FLAVA and BridgeTower give the probability that
they match; ViLT's gives a logit. BLIP, BLIP-2 and FLAVA also embed both sides, which is used to short-list a gallery.
The same checkpoint with only the cosine of its towers is hf:OWNER/NAME.
"""

from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.models import frozen, hub
from vlprobe.models.frozen import pick_device
from vlprobe.models.matching.blip import Blip, Blip2
from vlprobe.models.matching.bridgetower import BridgeTower
from vlprobe.models.matching.flava import Flava
from vlprobe.models.matching.heads import ItmHead
from vlprobe.models.matching.vilt import Vilt

PREFIX = "hf-itm"
KINDS: dict[str, type[ItmHead]] = {
    "blip": Blip,
    "blip-2": Blip2,
    "vilt": Vilt,
    "flava": Flava,
    "bridgetower": BridgeTower,
}


def names() -> list[str]:
    """Typical names; any repository or folder that holds a head of KINDS can be typed."""
    return [
        "hf-itm:Salesforce/blip-itm-base-coco",
        "hf-itm:Salesforce/blip-itm-large-coco",
        "hf-itm:Salesforce/blip2-itm-vit-g",
        "hf-itm:dandelin/vilt-b32-finetuned-coco",
        "hf-itm:facebook/flava-full",
        "hf-itm:BridgeTower/bridgetower-base-itm-mlm",
        "hf-itm:BridgeTower/bridgetower-large-itm-mlm-itc",
    ]


def check_name(name: str) -> None:
    """Raise InvalidInput if the name is that of no folder and can be that of no repository."""
    hub.local_folder(name)


def load(name: str, device: str = "auto", precision: str = "fp32") -> ItmHead:
    """Return the model of that name. Raises InvalidInput or MissingDependency."""
    hub.need(name, "transformers")
    device, precision = pick_device(device), frozen.check_precision(precision)
    folder = hub.find(name)
    config = hub.read_config(folder)
    model_type = str(config.get("model_type"))
    kind = KINDS.get(model_type)
    if kind is None:
        raise InvalidInput(
            f"'{name}' is a model of type '{model_type}'. Expected a head of: {', '.join(KINDS)}. "
            f"Dual encoders are loaded as hf:{name.partition(':')[2]}."
        )
    with hub.opening(name):
        head = kind.opened(name, folder, config, device, precision)
        head.match(
            head.encode_pictures([head.preprocess(Image.new("RGB", (64, 64)))]),
            head.tokenize(["a"]),
        )
    head.sources = hub.sources(folder)
    return head
