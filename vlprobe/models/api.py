"""Models that a server answers for, OpenAI-compatible: http:URL#MODEL, options after plus signs.

    http:URL#MODEL           embeddings of texts: POST URL/embeddings
    +pictures                embeddings of pictures, too, as data URLs
    +normalise               vectors may have any length; else those that are not 1 are refused
    +dimensions=N            of an embedding, where the server lets one choose
    +chat                    "Does this picture show ...?", by the probabilities of its first word:
                             log p(yes) - log p(no): POST URL/chat/completions
    +probability             that of yes against no, in place of its log-odds
    +top=N                   how many of the most probable words the server names [20]
    +side=PIXELS             of a picture's longer side, at most [512]
    +fingerprint=TEXT        which model or system_fingerprint every answer must have [that of the first]
    +timeout=SECONDS +parallel=N
                             how long a server may be silent [120], requests at the same time [4]
    +as=NAME                 its display name: up to 60 letters, all but "+"

Which servers may be asked, and whose keys go where: `registry.endpoints`.
"""

from vlprobe.models.endpoint import chat, embeddings
from vlprobe.models.endpoint.served import ServedModel, parse
from vlprobe.registry import endpoints
from vlprobe.types import Capabilities

PREFIX = "http"


def names() -> list[str]:
    """The form of a name; URL and MODEL stand for those of a server."""
    return ["http:URL#MODEL"]


def check_name(name: str) -> None:
    """Raise InvalidInput if it names no model of a server, or the key of its server cannot be sent."""
    endpoints.key_of(parse(name).address.origin)


def named_capabilities(name: str) -> Capabilities:
    """What a model of that name can be asked, by its options alone."""
    parsed = parse(name)
    return (chat if parsed.is_chat else embeddings).capabilities_of(parsed)


def load(name: str, device: str = "auto", precision: str = "fp32") -> ServedModel:
    """The model of that name, which nobody has asked anything yet. Raises InvalidInput."""
    check_name(name)
    parsed = parse(name)
    return chat.ServedJudge(parsed) if parsed.is_chat else embeddings.ServedEmbeddings(parsed)
