"""Find stored models and runs by what people call them."""

from typing import Any

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.render.words import model_name
from vlprobe.storage import display_names
from vlprobe.storage.store import Store
from vlprobe.views import runs


def find_model(store: Store, name: str) -> str:
    """Return the stored name of the model with this display name, and any other name unchanged.

    A display name is one that a person set, what `+as=` says, or the short name on pages. A stored name comes first.

    Raises:
        InvalidInput: Several stored models have this display name.
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


def find_run(store: Store, name: str) -> dict[str, Any]:
    """Return the manifest of a run by its key, the beginning of it, or the name of its model.

    A model stands for its newest run.

    Raises:
        NotFound: No run has this key, and no stored model this name.
        InvalidInput: The name stands for several runs or models.
    """
    model = find_model(store, name)
    manifests = runs.known_manifests(store)  # oldest first
    for manifest in reversed(manifests):
        if manifest["run"]["model"] == model:
            return manifest
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
            "`vlprobe show` lists them.",
        ) from None
