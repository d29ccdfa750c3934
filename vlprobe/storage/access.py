"""Access limits for a served dashboard: readable folders, write access, and sign-in.

`vlprobe dashboard` sets these environment variables for its server, and jobs started by the server inherit them.
Commands run on the machine itself are not limited.

    VLPROBE_READ_ONLY=1      nothing can be run, written or uploaded
    VLPROBE_ROOTS=/a:/b      files of datasets and models are only read from these folders
    VLPROBE_REMOTES=https:.. URL prefixes, one per line, from which tables may be downloaded; with
                             VLPROBE_ROOTS, from no other URL
    VLPROBE_SIGN_IN=a@b,@c   addresses or domains that may sign in; *: anyone
    VLPROBE_QUIZ=1           people may open rooms to take the quiz together
    VLPROBE_PLUGINS=a        plug-ins whose code may run, one name per line (`registry.plugins`); no others
    VLPROBE_APIS=https://a   servers that may answer for models, one per line (`registry.endpoints`); no others
    VLPROBE_RAY=HOST:PORT    the Ray cluster that runs may use (`runs.ray_cluster`); no others
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from vlprobe.errors import InvalidInput

READ_ONLY = "VLPROBE_READ_ONLY"
ROOTS = "VLPROBE_ROOTS"
REMOTES = "VLPROBE_REMOTES"
SIGN_IN = "VLPROBE_SIGN_IN"
QUIZ = "VLPROBE_QUIZ"
PLUGINS = "VLPROBE_PLUGINS"
REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]*://")  # start of a URL, including chained ones
APIS = "VLPROBE_APIS"
RAY = "VLPROBE_RAY"


def settings(
    read_only: bool,
    roots: Sequence[Path],
    people: Sequence[str] = (),
    quiz: bool = False,
    remotes: Sequence[str] = (),
) -> dict[str, str]:
    """Build the environment variables that apply access limits to a server.

    Without `roots`, any file may be read; without `people`, no one has to sign in. `quiz` allows rooms; `remotes` are
    URL prefixes from which tables may be downloaded. Raises InvalidInput if a value could be read as a different limit.
    """
    for address in people:
        is_address = (
            "@" in address and address.rpartition("@")[2] and not re.search(r"[\s,*]", address)
        )
        if address != "*" and not is_address:
            raise InvalidInput(
                f"'{address}' is not valid for sign-in. Expected an email address, @domain, or *."
            )
    for root in roots:
        if os.pathsep in str(root.resolve()):
            raise InvalidInput(
                f"The path of folder '{root}' contains '{os.pathsep}', which separates "
                "folders. Rename the folder."
            )
    for url in remotes:
        if not REMOTE.match(url) or "\n" in url:
            raise InvalidInput(f"'{url}' is not a URL. Expected a URL such as s3://BUCKET/FOLDER.")
    environment = {READ_ONLY: "1"} if read_only else {}
    if remotes:
        environment[REMOTES] = "\n".join(remotes)
    if quiz:
        environment[QUIZ] = "1"
    if people:
        environment[SIGN_IN] = ",".join(people)
    if roots:
        environment[ROOTS] = os.pathsep.join(str(root.resolve()) for root in roots)
    return environment


def read_only() -> bool:
    """Return whether the server is read-only, so that no one can run models or write or upload files."""
    return bool(os.environ.get(READ_ONLY))


def quiz() -> bool:
    """Return whether users may open quiz rooms. Rooms are kept in memory, so a read-only server can have them too."""
    return bool(os.environ.get(QUIZ))


def sign_in() -> bool:
    """Return whether people must sign in. An empty setting admits no one."""
    return SIGN_IN in os.environ


def allowed(email: str, verified: bool) -> bool:
    """Return whether a signed-in person may use the dashboard.

    Everyone may, unless SIGN_IN lists addresses or domains: then the address must match one and be verified.

    >>> os.environ[SIGN_IN] = "ada@example.org,@example.com"
    >>> allowed("Ada@example.org", True), allowed("bob@example.com", True), allowed("bob@example.org", True)
    (True, True, False)
    >>> allowed("ada@example.org", False), allowed("", True)
    (False, False)
    >>> del os.environ[SIGN_IN]
    """
    patterns = [pattern.strip().lower() for pattern in os.environ.get(SIGN_IN, "*").split(",")]
    if "*" in patterns:
        return True
    address = email.lower()
    matches = any(
        address == pattern or (pattern.startswith("@") and address.endswith(pattern))
        for pattern in patterns
    )
    return verified and "@" in address and matches


def refuse_writing() -> None:
    """Raise InvalidInput if the server is read-only."""
    if read_only():
        raise InvalidInput(
            "This dashboard is read-only. Install vlprobe to run models and save changes."
        )


def refuse_outside(path: Path) -> None:
    """Raise InvalidInput if a file is outside the folders that the dashboard may read. Links are resolved first.

    The message does not reveal whether the file exists.
    """
    setting = os.environ.get(ROOTS)
    if setting is None:
        return
    roots = [Path(root) for root in setting.split(os.pathsep) if root]
    try:
        resolved = path.expanduser().resolve()
    except (OSError, ValueError, RuntimeError):
        # An unknown home, NUL, a loop of links: no file can have this path
        resolved = None
    if resolved is None or not any(resolved.is_relative_to(root) for root in roots):
        raise InvalidInput(
            f"'{path}' is outside the folders that this dashboard may read "
            f"({', '.join(map(str, roots))}). "
            "Put the files there, or ask the person who runs the server to add a folder with --root."
        )


def refuse_remote(url: str) -> None:
    """Raise InvalidInput if the dashboard may not download from a URL.

    A server that is read-only or limited to certain folders may only download URLs that begin with one of the
    prefixes in VLPROBE_REMOTES.
    """
    if ROOTS not in os.environ and not read_only():
        return
    allowed = [name.rstrip("/") + "/" for name in os.environ.get(REMOTES, "").split("\n") if name]
    if ".." in url or "%" in url or not any(url.startswith(prefix) for prefix in allowed):
        raise InvalidInput(
            f"This dashboard may not download '{url}'. Put the file in one of its folders, or ask the person who runs "
            "the server to allow the URL with --remote."
        )


def refuse_typed(path: Path) -> None:
    """Raise InvalidInput if the dashboard may not read a path that a user typed.

    If the server is limited to certain folders, the path must be in one of them. Otherwise, a read-only server rejects
    every path to an existing file.
    """
    if ROOTS in os.environ:
        refuse_outside(path)
    elif read_only() and _exists(path):
        raise InvalidInput(
            f"'{path}' is a file, but this dashboard is read-only. Choose one of the "
            "listed datasets."
        )


def refuse_name(name: str) -> None:
    """Raise InvalidInput if a dataset or model name contains a path that the dashboard may not read.

    Text that does not name an existing file is not treated as a path, because the names of published weights also
    contain slashes.
    """
    if ROOTS not in os.environ and not read_only():
        return
    location = name.partition(":")[2]
    if REMOTE.match(location):
        url, _, folder = location.partition("@")
        refuse_remote(url)
        location = folder
    for text in {location, *re.split("[:@]", location)}:
        path = Path(text)
        if text and (text[0] in "/~." or ".." in path.parts or _exists(path)):
            if ROOTS not in os.environ:
                raise InvalidInput(
                    f"'{name}' is a file, but this dashboard is read-only. Choose a name "
                    "from the list."
                )
            refuse_outside(path)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no file can have that name
        return False
