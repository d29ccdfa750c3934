"""Find stored models and runs by their stored name, display name or key."""

from collections.abc import Collection
from typing import Any

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.render.words import model_name
from vlprobe.storage import display_names
from vlprobe.storage.store import Store
from vlprobe.views import runs


def find_model(store: Store, name: str) -> str:
    """Return the stored name for a model's display name. A name that is not a display name is returned unchanged.

    A display name is a name set by a user, the value of `+as=`, or the short name on pages. A stored name takes
    precedence over an equal display name.

    Raises:
        InvalidInput: Several stored models have the display name.
    """
    models = runs.models(store)
    if name in models:
        return name
    renamed = display_names.read(store)
    called = [model for model in models if model_name(model, renamed) == name]
    if len(called) > 1:
        raise InvalidInput(
            f"{len(called)} models are called '{name}': {', '.join(called)}. "
            "Use a stored name or a run key instead."
        )
    return called[0] if called else name


def find_run(store: Store, name: str, preferred: Collection[str] = ()) -> dict[str, Any]:
    """Return the manifest of a run that is given by its key, by a prefix of its key, or by the name of its model.

    For a model name, the model's newest run is returned, on a preferred question set if it has one.

    Args:
        preferred: Keys of question sets.

    Raises:
        NotFound: No run has the key, and no stored model has the name.
        InvalidInput: The name matches several runs or models.
    """
    model = find_model(store, name)
    manifests = runs.known_manifests(store)  # oldest first
    of_model = [each for each in reversed(manifests) if each["run"]["model"] == model]
    if of_model:
        return min(of_model, key=lambda manifest: manifest["case_key"] not in preferred)
    try:
        return store.find(name)
    except NotFound:
        renamed = display_names.read(store)
        called = [model_name(model, renamed) for model in runs.models(store)]
        keys = [manifest["key"] for manifest in reversed(manifests)]
        raise NotFound(
            "stored run or model",
            name,
            [*dict.fromkeys(called), *keys],
            "`vlprobe show` lists all runs.",
        ) from None
