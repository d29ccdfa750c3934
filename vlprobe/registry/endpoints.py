"""The HTTP servers that vlprobe may query for models, and their API keys.

Queries to a model `http:URL#MODEL` can cost money, so a name by itself is not enough. The URL must be in VLPROBE_APIS,
one per line (`URL` for all models on a server, `URL#MODEL` for a single model). The command line and Python calls add
the URL in a typed name. `vlprobe dashboard --api URL` adds it for the dashboard, and jobs and workers inherit it. Names
from anywhere else (a link, a form, a job file, a stored run) are rejected.

VLPROBE_API_KEYS holds pairs of an origin and its key, separated by spaces:
"https://api.example.com KEY http://127.0.0.1:8000 KEY". A key is read when a request is sent, is only sent to its
origin, and is not kept in any object.
"""

import ipaddress
import os
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from vlprobe.errors import InvalidInput
from vlprobe.storage.access import APIS

PREFIX = "http:"
KEYS = "VLPROBE_API_KEYS"
FORM = "http:URL#MODEL, such as http:https://api.example.com/v1#some-model"
HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?|[0-9a-f:.]+")
PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")
MODEL = re.compile(r"[^\s#?%+](?:[^\s#?%+]|%[0-9A-Fa-f]{2}){0,199}")
KEY = re.compile(r"[!-~]{1,4096}")
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a model on a server, parsed from its name."""

    url: str  # without a trailing slash; "/embeddings" is appended
    model: str  # the id of the model on the server; "" for all models
    origin: str  # scheme, host and port, which the API key belongs to

    @property
    def line(self) -> str:
        """The address as a line in VLPROBE_APIS."""
        return f"{self.url}#{self.model}" if self.model else self.url


def parse(text: str) -> Address:
    """Parse an address in the form `URL` or `URL#MODEL`.

    Raises:
        InvalidInput: The text is not an http or https URL, or it contains a password or a query, which would be stored
            with the results.
    """
    quoted = f"'{PREFIX}{text}'"
    base, has_model, model = text.partition("#")
    try:
        split_url = urlsplit(base)
        host, port = split_url.hostname or "", split_url.port
    except ValueError:
        raise InvalidInput(f"{quoted} does not name a server. Expected {FORM}.") from None
    if split_url.username is not None or split_url.password is not None or split_url.query:
        # The message is not repeated: it may contain a secret.
        raise InvalidInput(
            "The URL of the model contains a password or a query, which would be stored with "
            f"the results. Put the key into {KEYS} instead, as the server's origin, a space "
            "and the key."
        )
    path = split_url.path.rstrip("/")
    if split_url.scheme not in PORTS or not HOST.fullmatch(host) or not PATH.fullmatch(path):
        raise InvalidInput(f"{quoted} does not name a server. Expected {FORM}.")
    model_id = unquote(model)
    is_model = MODEL.fullmatch(model) and model_id.isprintable() and " " not in model_id
    if ".." in path.split("/") or (has_model and not is_model):
        raise InvalidInput(
            f"{quoted} does not name a model on a server. Expected {FORM}. In MODEL, write '+' "
            "as %2B."
        )
    address = f"[{host}]" if ":" in host else host
    netloc = address if port in (None, PORTS[split_url.scheme]) else f"{address}:{port}"
    origin = f"{split_url.scheme}://{netloc}"
    return Address(f"{origin}{path}", model_id, origin)


def of_name(name: str) -> Address:
    """Parse the address in a model name such as `http:URL#MODEL+OPTION`. Raises InvalidInput."""
    return parse(name.removeprefix(PREFIX).partition("+")[0])


def named() -> tuple[str, ...]:
    """Return the lines in VLPROBE_APIS."""
    return tuple(filter(None, os.environ.get(APIS, "").split("\n")))


def allow(address: Address) -> None:
    """Allow this process and its child processes to query models at an address.

    Call this only for an address that the user typed, never for one in a link, a form or a file.
    """
    os.environ[APIS] = "\n".join(dict.fromkeys([*named(), address.line]))


def refuse_unnamed(name: str) -> None:
    """Raise InvalidInput if the user did not allow the server of a model when this process was started."""
    address = of_name(name)
    if not {address.url, address.line} & set(named()):
        raise InvalidInput(
            f"'{name}' uses a server, which may cost money, and its URL was not allowed at "
            f"startup. Restart with --api {address.url}."
        )


def key_of(origin: str) -> str:
    """Return the API key for an origin, or "" if it has no key.

    Raises InvalidInput if VLPROBE_API_KEYS is malformed, or if the key would be sent unencrypted over a network. The
    message never contains a key.
    """
    words = os.environ.get(KEYS, "").split()
    if len(words) % 2 or not all(KEY.fullmatch(word) for word in words):
        raise InvalidInput(
            f"{KEYS} is malformed. Expected an origin, a space and its key for each server: "
            f'{KEYS}="https://api.example.com $KEY".'
        )
    for spelled, key in zip(words[::2], words[1::2], strict=True):
        try:
            owner = parse(spelled)
        except InvalidInput:
            raise InvalidInput(
                f"{KEYS} has a word where an origin is expected. Expected an origin such "
                "as https://api.example.com, a space and its key for each server."
            ) from None
        if owner.url != owner.origin:
            raise InvalidInput(
                f"{KEYS} has a URL with a path where an origin is expected. Expected only "
                f"{owner.origin}, a space and its key."
            )
        if owner.origin == origin:
            url = urlsplit(origin)
            if url.scheme == "http" and not is_this_machine(url.hostname or ""):
                raise InvalidInput(
                    f"The key of {origin} would be sent unencrypted. Expected https, or a server on this machine."
                )
            return key
    return ""


def is_this_machine(host: str) -> bool:
    """Return whether a host name or IP address always refers to this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
