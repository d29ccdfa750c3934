"""Names of models of a server: http:URL#MODEL, options after plus signs."""

import json
import re
from dataclasses import dataclass

from vlprobe.errors import InvalidInput
from vlprobe.registry import endpoints
from vlprobe.registry.endpoints import Address

OPTION = re.compile(
    r"(chat|pictures|normalise|probability)|as=[^+]{1,60}|(fingerprint)=([^+]{1,200})|"
    r"(dimensions|side|top|timeout|parallel)=([0-9]{1,5})"
)
EXPECTED = (
    "chat, pictures, normalise, probability, dimensions=N, side=PIXELS, top=N, fingerprint=TEXT, "
    "timeout=SECONDS, parallel=N or as=NAME"
)
BOUNDS = {  # least, most, default
    "dimensions": (1, 65_536, 0),
    "side": (16, 4096, 512),
    "top": (2, 20, 20),
    "timeout": (1, 3600, 120),
    "parallel": (1, 64, 4),
}


@dataclass(frozen=True, slots=True)
class EndpointName:
    """A name, parsed."""

    name: str  # as it was typed
    address: Address
    is_chat: bool  # whether it is asked in words, else for embeddings
    sees_pictures: bool  # whether embeddings of pictures are asked for
    normalise: bool  # whether embeddings may have any length
    gives_probability: bool  # in place of log-odds
    dimensions: int  # of an embedding that the server is asked for; 0: its own
    side: int  # pixels of a picture's longer side, at most
    top: int  # tokens whose probabilities are asked for
    fingerprint: (
        str  # that answers must have, as model or as fingerprint; "": that of the first one
    )
    timeout: int  # seconds
    parallel: int  # requests at the same time


def parse(name: str) -> EndpointName:
    """The parts of a name. Raises InvalidInput where one of them is not known, or none is meant."""
    base, *options = name.removeprefix(endpoints.PREFIX).split("+")
    address = endpoints.parse(base)
    if not address.model:
        raise InvalidInput(f"'{name}' names no model of the server. Expected {endpoints.FORM}.")
    words: set[str] = set()
    numbers = {option: default for option, (_, _, default) in BOUNDS.items()}
    fingerprint = ""
    for option in options:
        match = OPTION.fullmatch(option)
        if not match:
            raise InvalidInput(
                f"'{option[:80]}' in '{name}' is no option. Expected {EXPECTED}; a '+' in MODEL is written %2B."
            )
        words |= {match[1]} - {None}
        fingerprint = match[3] or fingerprint
        if match[4]:
            low, high, _ = BOUNDS[match[4]]
            if not low <= int(match[5]) <= high:
                raise InvalidInput(
                    f"'{option}' in '{name}' is out of bounds. Expected {match[4]}={low} to {high}."
                )
            numbers[match[4]] = int(match[5])
    strays = words & ({"pictures", "normalise"} if "chat" in words else {"probability"})
    if strays:
        kind = "chat sees pictures and gives no embeddings" if "chat" in words else "it takes +chat"
        raise InvalidInput(f"'+{min(strays)}' in '{name}' means nothing: {kind}. Leave it out.")
    return EndpointName(
        name=name,
        address=address,
        is_chat="chat" in words,
        sees_pictures="pictures" in words,
        normalise="normalise" in words,
        gives_probability="probability" in words,
        fingerprint=fingerprint,
        **numbers,
    )


def described(parsed: EndpointName, how: object) -> str:
    """What answers depend on beside the questions, as text."""
    address = parsed.address
    identifying = [
        address.url,
        address.model,
        parsed.is_chat,
        parsed.dimensions,
        parsed.fingerprint,
        how,
    ]
    return json.dumps(identifying)
