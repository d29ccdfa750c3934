"""Plug-ins and servers named on the command line. Apart from Python code, only these plug-ins may run, and only these
servers may receive requests.
"""

from collections.abc import Sequence
from importlib.util import find_spec


def require(plugins: Sequence[str], urls: Sequence[str]) -> None:
    """Import the plug-ins given with `--plugin`, and allow this process and its child processes to use them and
    to send requests to the servers given with `--api`. Raises NotFound or InvalidInput if one cannot be used.
    """
    if plugins or urls:
        from vlprobe import registry
        from vlprobe.registry import endpoints

        for name in plugins:
            registry.require_plugin(name)
        for url in urls:
            endpoints.allow(endpoints.parse(url))


def require_cluster(address: str) -> None:
    """Allow child processes to use the Ray cluster given with `--ray`, if any.

    Raises MissingDependency if Ray is not installed, and InvalidInput unless the address is HOST:PORT.
    """
    if address:
        from vlprobe.errors import MissingDependency
        from vlprobe.runs import ray_cluster

        if find_spec("ray") is None:
            raise MissingDependency("--ray", "ray", "'vlprobe[scale]'")
        ray_cluster.allow(address, accepts_local=False)


def typed(*values: object) -> None:
    """Allow this process to use the plug-ins and servers that a user named in the arguments of a command."""
    from vlprobe import registry

    for value in values:
        names = value if isinstance(value, list | tuple) else [value]
        registry.allow_typed(*(name for name in names if isinstance(name, str) and name))
