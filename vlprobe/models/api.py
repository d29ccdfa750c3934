"""Models behind an OpenAI-compatible server: http:URL#MODEL, options after plus signs.

    http:URL#MODEL           embeddings of texts: POST URL/embeddings
    +pictures                embeddings of pictures too, sent as data URLs
    +normalise               accept vectors of any length; without it, a length other than 1 is rejected
    +dimensions=N            of an embedding, if the server allows a choice
    +chat                    "Does this picture show ...?", from the probabilities of its first word:
                             log p(yes) - log p(no): POST URL/chat/completions
    +probability             probability of yes against no, instead of its log-odds
    +template=TEXT           the question, with {} for the caption
    +top=N                   number of most probable words that the server returns [20]
    +side=PIXELS             maximum of a picture's longer side [512]
    +fingerprint=TEXT        model or system_fingerprint that every answer must have [that of the first]
    +timeout=SECONDS +parallel=N
                             timeout without data [120], concurrent requests [4]
    +as=NAME                 its display name: up to 60 letters, all but "+"

`registry.endpoints` decides which servers are allowed and which key each receives.
"""

from vlprobe.models.endpoint import chat, embeddings
from vlprobe.models.endpoint.served import ServedModel, parse
from vlprobe.registry import endpoints
from vlprobe.types import Capabilities

PREFIX = "http"


def names() -> list[str]:
    """Return the form of a name, with the placeholders URL and MODEL."""
    return ["http:URL#MODEL"]


def check_name(name: str) -> None:
    """Raise InvalidInput if it names no model of a server, or the key of its server cannot be sent."""
    endpoints.key_of(parse(name).address.origin)


def named_capabilities(name: str) -> Capabilities:
    """Capabilities of a model of that name, derived only from its options."""
    parsed = parse(name)
    return (chat if parsed.is_chat else embeddings).capabilities_of(parsed)


def load(name: str, device: str = "auto", precision: str = "fp32") -> ServedModel:
    """Return the model of that name without sending a request. Raises InvalidInput."""
    check_name(name)
    parsed = parse(name)
    return chat.ServedJudge(parsed) if parsed.is_chat else embeddings.ServedEmbeddings(parsed)
