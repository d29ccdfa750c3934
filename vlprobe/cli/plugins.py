"""Plug-ins and servers that a person names on the command line: apart from Python the only way for plug-ins to run, and
for servers to receive requests.
"""

from collections.abc import Sequence
from importlib.util import find_spec


def require(plugins: Sequence[str], urls: Sequence[str]) -> None:
    """Import the plug-ins of `--plugin`, and let this process and those that it starts use them and ask the servers of
    `--api`. Raises NotFound or InvalidInput if one cannot be used.
    """
    if plugins or urls:
        from vlprobe import registry
        from vlprobe.registry import endpoints

        for name in plugins:
            registry.require_plugin(name)
        for url in urls:
            endpoints.allow(endpoints.parse(url))


def require_cluster(address: str) -> None:
    """Let the processes that this one starts use the Ray cluster of `--ray`, if one is given.

    Raises MissingDependency without Ray, InvalidInput unless the address is HOST:PORT.
    """
    if address:
        from vlprobe.errors import MissingDependency
        from vlprobe.runs import ray_cluster

        if find_spec("ray") is None:
            raise MissingDependency("--ray", "ray", "'vlprobe[scale]'")
        ray_cluster.allow(ray_cluster.parse_address(address, accepts_local=False))


def typed(*values: object) -> None:
    """Let this process use the plug-ins and ask the servers whose names were typed among the values of a command."""
    from vlprobe import registry

    for value in values:
        names = value if isinstance(value, list | tuple) else [value]
        registry.allow_typed(*(name for name in names if isinstance(name, str) and name))
