"""Models behind an OpenAI-compatible server: http:URL#MODEL, with options after plus signs.

    http:URL#MODEL           embeddings of texts: POST URL/embeddings
    +pictures                embeddings of pictures too, sent as data URLs
    +normalise               accept vectors of any length; without it, a length other than 1 is rejected
    +dimensions=N            dimension of an embedding, if the server allows a choice
    +chat                    ask "Does this picture show ...?" and score the first word of the answer as
                             log p(yes) - log p(no): POST URL/chat/completions
    +probability             return the probability of yes against no, instead of the log-odds
    +template=TEXT           the question, with {} for the caption
    +top=N                   number of most probable words that the server returns [20]
    +side=PIXELS             maximum length of a picture's longer side [512]
    +fingerprint=TEXT        model or system_fingerprint that every answer must have [same as the first answer]
    +timeout=SECONDS +parallel=N
                             timeout without data [120], concurrent requests [4]
    +as=NAME                 the display name: up to 60 characters, without "+"

`registry.endpoints` decides which servers are allowed and which key each server receives.
"""

from vlprobe.models.endpoint import chat, embeddings
from vlprobe.models.endpoint.served import ServedModel, parse
from vlprobe.registry import endpoints
from vlprobe.types import Capabilities

PREFIX = "http"
NAMES = ("http:URL#MODEL",)


def check_name(name: str) -> None:
    """Raise InvalidInput if the name is not a valid model on a server, or the server's key cannot be sent."""
    endpoints.key_of(parse(name).address.origin)


def named_capabilities(name: str) -> Capabilities:
    """Derive the capabilities of a model only from the options in its name."""
    return parse(name).capabilities


def load(name: str, device: str = "auto", precision: str = "fp32") -> ServedModel:
    """Create a model by name, without sending a request. Raises InvalidInput."""
    check_name(name)
    parsed = parse(name)
    return chat.ServedJudge(parsed) if parsed.is_chat else embeddings.ServedEmbeddings(parsed)
