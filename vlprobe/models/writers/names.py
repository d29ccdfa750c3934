"""Which writer a name stands for."""

from vlprobe.errors import InvalidInput
from vlprobe.models import hf_gen
from vlprobe.models.endpoint import names as endpoint_names
from vlprobe.models.writers import local
from vlprobe.models.writers.prompts import Writer
from vlprobe.models.writers.served import ServedWriter
from vlprobe.registry import endpoints
from vlprobe.storage.access import refuse_name


def load(name: str, device: str = "auto", precision: str = "fp32") -> Writer:
    """The writer of that name, which nobody has asked anything yet.

    Raises:
        InvalidInput: it is none, or may not be asked.
        MissingDependency: transformers is not installed.
    """
    if name.startswith(endpoints.PREFIX):
        endpoints.refuse_unnamed(name)
        parsed = endpoint_names.parse(name)
        endpoints.authorization(parsed.address.origin)
        return ServedWriter(parsed)
    if name.startswith(f"{hf_gen.PREFIX}:"):
        refuse_name(name)
        return local.load(name, device, precision)
    raise InvalidInput(
        f"'{name[:200]}' cannot be asked to write. Expected {endpoints.FORM}, or hf-gen:FOLDER or hf-gen:OWNER/NAME."
    )
