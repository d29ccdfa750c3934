"""Plug-ins and servers that a person names on the command line: the only way, beside Python, for their
code to run, and for them to be asked.
"""

from collections.abc import Sequence
from importlib.util import find_spec


def require(names: Sequence[str]) -> None:
    """Imports the plug-ins of `--plugin`, and lets this process and those that it starts use them.

    Raises NotFound or InvalidInput where one cannot be used.
    """
    if names:
        from vlprobe import registry

        for name in names:
            registry.require_plugin(name)


def require_servers(urls: Sequence[str]) -> None:
    """Lets this process and those that it starts ask the servers of `--api`. Raises InvalidInput."""
    if urls:
        from vlprobe.registry import endpoints

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
    """Lets the plug-ins be imported, and the servers be asked, whose names were typed among the values of
    a command.
    """
    from vlprobe import registry

    for value in values:
        names = value if isinstance(value, list | tuple) else [value]
        registry.allow_typed(*(name for name in names if isinstance(name, str) and name))
