"""Writers by name."""

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.models import api
from vlprobe.models.endpoint import served as endpoint
from vlprobe.models.writers import local
from vlprobe.models.writers.prompts import Writer
from vlprobe.models.writers.served import ServedWriter
from vlprobe.registry import endpoints

LOCAL = "hf-gen"


def load(name: str, device: str = "auto", precision: str = "fp32") -> Writer:
    """Return the writer of that name without sending a request.

    Raises:
        InvalidInput: it cannot write, or may not be used here.
        MissingDependency: transformers is not installed.
    """
    prefix = name.partition(":")[0]
    if prefix in (api.PREFIX, LOCAL):
        registry.parse_name("models", name).check()
        if prefix == LOCAL:
            return local.load(name, device, precision)
        return ServedWriter(endpoint.parse(name))
    raise InvalidInput(
        f"'{name[:200]}' cannot be asked to write. Expected {endpoints.FORM}, or hf-gen:FOLDER or hf-gen:OWNER/NAME."
    )
