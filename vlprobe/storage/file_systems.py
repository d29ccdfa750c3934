"""Open fsspec file systems with timeouts that suit a page, and report every failure in one line."""

import contextlib
import functools
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from vlprobe.errors import InvalidInput, MissingDependency, VlprobeError
from vlprobe.storage import access

# Exceptions other than OSError of the file systems of fsspec, by module and name.
FILE_SYSTEM_ERRORS = (
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("aiohttp", "ClientError"),
    ("gcsfs.retry", "HttpError"),
    ("azure.core.exceptions", "AzureError"),
)


def open_file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, without cached listings, and the path of the URL in it.

    Raises:
        MissingDependency: s3fs is not installed.
        InvalidInput: The package of another scheme is not installed, or no file system supports this scheme.
    """
    import fsspec

    try:
        # A cached listing would hide new objects.
        files, root = fsspec.core.url_to_fs(
            url, use_listings_cache=False, **s3_timeouts(url), **redirect_check(url)
        )
    except ImportError as error:
        if url.startswith("s3"):
            raise MissingDependency(f"'{url}'", "s3fs", "'vlprobe[s3]'") from None
        raise InvalidInput(
            f"'{url}' needs a package that is not installed ({one_line(error)}). Install it with pip."
        ) from None
    except ValueError as error:
        raise InvalidInput(
            f"'{url}' is not a valid cache ({one_line(error)}). Expected s3://BUCKET/FOLDER or a folder."
        ) from None
    if hasattr(files, "retries"):  # s3fs retries after botocore gave up
        files.retries = min(files.retries, 2)
    return files, root.rstrip("/")


def redirect_check(url: str) -> dict[str, dict]:
    """Return the fsspec options that reject a redirect to a URL that is not allowed; empty for schemes other than http
    and https.
    """
    if url.partition("://")[0] not in ("http", "https"):
        return {}
    return {"client_kwargs": {"middlewares": (_refuse_remote_request,)}}


async def _refuse_remote_request(request: Any, handler: Any) -> Any:
    """Check the URL of a request as aiohttp middleware, which also runs for each redirect."""
    access.refuse_remote(str(request.url.with_query(None)))
    return await handler(request)


def s3_timeouts(url: str) -> dict[str, dict]:
    """Return short timeouts for S3, because pages wait for it; empty for other schemes. AWS_MAX_ATTEMPTS
    sets the retries, as elsewhere.
    """
    if url.partition("://")[0] not in ("s3", "s3a"):
        return {}
    from fsspec.config import conf

    default: dict[str, object] = {"connect_timeout": 5, "read_timeout": 8}
    with contextlib.suppress(ImportError):
        default["http_session_cls"] = _unasked_session()
    if "AWS_MAX_ATTEMPTS" not in os.environ:
        default["retries"] = {"total_max_attempts": 2, "mode": "standard"}
    return {"config_kwargs": default | conf.get("s3", {}).get("config_kwargs", {})}


@functools.cache  # fsspec looks up an open file system by its options: a new class would open a new one
def _unasked_session() -> type:
    """Create a type of HTTP session that sends a body without a prior request (`Expect: 100-continue`): aiohttp times
    out a silent server only once the body is sent, and would wait for the permission forever.
    """
    from aiobotocore.httpsession import AIOHTTPSession

    class UnaskedSession(AIOHTTPSession):
        async def send(self, request: Any) -> Any:
            request.headers.pop("Expect", None)  # no part of the signature
            return await super().send(request)

    return UnaskedSession


@contextlib.contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Turn errors of the file system into one line. A FileNotFoundError that the block lets pass means that the bucket
    does not exist.
    """
    try:
        yield
    except VlprobeError:
        raise
    except FileNotFoundError as error:
        raise InvalidInput(
            f"There is no '{url}' ({one_line(error)}). Create the bucket, or check the URL."
        ) from None
    except _file_system_errors() as error:
        raise InvalidInput(
            f"Cannot use '{url}' ({one_line(error)}). Check the network, the endpoint and the credentials in "
            "the environment. Finished work is kept on this machine; run the same command again to continue."
        ) from None


def _file_system_errors() -> tuple[type[BaseException], ...]:
    loaded = [
        getattr(sys.modules[module], name)
        for module, name in FILE_SYSTEM_ERRORS
        if module in sys.modules
    ]
    return (OSError, ValueError, NotImplementedError, *loaded)


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line, without user names and query strings (signatures) of
    URLs.
    """
    message = re.sub(r"//[^\s\"']*@", "//", " ".join(str(error).split()))
    return re.sub(r"\?[^\s\"')]*=[^\s\"')]*", "", message) or type(error).__name__
