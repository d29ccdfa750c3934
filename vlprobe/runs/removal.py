"""Removal of stored runs: either all given runs are removed or none."""

from collections.abc import Sequence

from vlprobe.errors import InvalidInput
from vlprobe.runs.verify import Damage, repair
from vlprobe.storage.store import Store


def removable(store: Store, keys: Sequence[str]) -> list[dict]:
    """Find the runs to remove, and return their manifests without duplicates. Nothing is removed yet.

    Args:
        store: The store that holds the runs.
        keys: Run keys, or their first digits.

    Raises:
        NotFound: no run has one of the keys.
        InvalidInput: the store cannot be written, or a run is bundled with vlprobe.
    """
    store.require_local_writable()
    manifests = {manifest["key"]: manifest for manifest in map(store.find, keys)}
    for key in manifests:
        if store.is_shipped(key):
            raise InvalidInput(
                f"Run {key} is bundled with vlprobe and cannot be removed. Set "
                "VLPROBE_SHIPPED= (empty) to hide bundled results."
            )
    return list(manifests.values())


def remove(store: Store, manifests: Sequence[dict]) -> int:
    """Remove runs, and the question sets that no other run uses. Tags and notes are kept.

    Returns the number of removed question sets, which is 0 for a shared store because another machine
    may use them.

    Raises InvalidInput if a file or an object cannot be removed.
    """
    keys = {manifest["key"] for manifest in manifests}
    case_keys = {manifest["case_key"] for manifest in manifests}
    current, unread = store.read_runs()  # unreadable runs may use the same question sets
    answered = {manifest["case_key"] for manifest in current if manifest["key"] not in keys}
    unanswered = set() if unread or store.mirror else case_keys - answered
    if store.mirror:
        for key in sorted(keys):
            store.mirror.remove_run(key)
    folders = [store.root / "runs" / key for key in sorted(keys)]
    folders += [store.root / "cases" / key for key in sorted(unanswered)]
    repair([Damage(folder, "", (folder,)) for folder in folders if folder.is_dir()])
    return len(unanswered)
