"""Access to fsspec file systems, with timeouts short enough for a page and one-line errors for every failure."""

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
    """Open the file system for a URL, without cached listings.

    Returns:
        The file system, and the URL's path in it.

    Raises:
        MissingDependency: s3fs is not installed.
        InvalidInput: the package for another scheme is not installed, or no file system supports the scheme.
    """
    import fsspec

    try:
        # A cached listing would hide new objects.
        files, root = fsspec.core.url_to_fs(url, use_listings_cache=False, **_options(url))
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


async def _refuse_remote_request(request: Any, handler: Any) -> Any:
    """aiohttp middleware that checks the URL of each request. It also runs for each redirect."""
    access.refuse_remote(str(request.url.with_query(None)))
    return await handler(request)


def _options(url: str) -> dict[str, dict]:
    """Return fsspec options for a URL: over HTTP, a check of each redirect against the allowed URLs; for S3, short
    timeouts, because pages wait for it. The number of retries can be set with AWS_MAX_ATTEMPTS, as for other AWS tools.
    """
    scheme = url.partition("://")[0]
    if scheme in ("http", "https"):
        return {"client_kwargs": {"middlewares": (_refuse_remote_request,)}}
    if scheme not in ("s3", "s3a"):
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
    """Create an HTTP session class that sends a body at once, without asking the server first (`Expect: 100-continue`).
    aiohttp only applies its timeout after the body is sent, so a silent server would keep the request waiting forever.
    """
    from aiobotocore.httpsession import AIOHTTPSession

    class UnaskedSession(AIOHTTPSession):
        async def send(self, request: Any) -> Any:
            request.headers.pop("Expect", None)  # no part of the signature
            return await super().send(request)

    return UnaskedSession


@contextlib.contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Convert file-system errors to one-line errors. A FileNotFoundError means that the bucket does not exist."""
    try:
        yield
    except VlprobeError:
        raise
    except FileNotFoundError as error:
        raise InvalidInput(
            f"'{url}' does not exist ({one_line(error)}). Create the bucket, or check the URL."
        ) from None
    except (OSError, ValueError, NotImplementedError, *_client_errors()) as error:
        raise InvalidInput(
            f"Cannot use '{url}' ({one_line(error)}). Check the network, the endpoint and the credentials in "
            "the environment. Finished work is kept on this machine; run the same command again to continue."
        ) from None


def _client_errors() -> Iterator[type[BaseException]]:
    for module, name in FILE_SYSTEM_ERRORS:
        if module in sys.modules:
            yield getattr(sys.modules[module], name)


def one_line(error: BaseException) -> str:
    """Format an error message on one line. User names in URLs and query strings, which may contain signatures, are
    removed.
    """
    message = re.sub(r"//[^\s\"']*@", "//", " ".join(str(error).split()))
    return re.sub(r"\?[^\s\"')]*=[^\s\"')]*", "", message) or type(error).__name__
