"""LoRA adapters of peft, such as AnglE's, which are merged into a model's weights.

An adapter folder has adapter_config.json and adapter_model.safetensors or .bin. Its settings are untrusted: peft would
import a module that they name, match regular expressions and open the base model that they name. Only the settings in
`AdapterSettings` are passed on; a folder that needs another one is rejected. The user names the base model.
"""

import re
import warnings
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from vlprobe.errors import InvalidInput
from vlprobe.models import hub
from vlprobe.models.checkpoint import read_weights
from vlprobe.models.modules import TransformersModel
from vlprobe.storage import files
from vlprobe.storage.access import refuse_outside

CONFIG = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
# Entries that have no effect once trained weights are loaded
WITHOUT_EFFECT = {
    *("task_type", "base_model_name_or_path", "revision", "inference_mode", "auto_mapping"),
    *("peft_version", "lora_dropout", "megatron_core", "loftq_config"),
    *("eva_config", "corda_config", "lora_ga_config", "ensure_weight_tying", "qalora_group_size"),
}
# How training began. With another value, peft changes the base model's weights when it loads the adapter.
KEEPS_BASE = (None, True, False, "gaussian", "eva", "orthogonal")
ModuleName = Annotated[str, msgspec.Meta(pattern=r"^[\w.]{1,200}$")]


class AdapterSettings(msgspec.Struct):
    """The settings of an adapter that are passed on to peft, with the values that are allowed."""

    r: Annotated[int, msgspec.Meta(ge=1, le=1024)]
    target_modules: Annotated[list[ModuleName], msgspec.Meta(min_length=1, max_length=1000)]
    lora_alpha: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 8
    use_rslora: bool = False
    use_dora: bool = False
    fan_in_fan_out: bool = False
    bias: Literal["none"] = "none"
    peft_type: Literal["LORA"] = "LORA"


def find(name: str, source: str) -> Path:
    """Return the folder of an adapter, which is downloaded from the hub if it is not a local folder.

    Args:
        name: The name that the user typed.
        source: A folder or OWNER/NAME.
    """
    return local_folder(name, source) or hub.fetch(
        name, source, [(file,) for file in WEIGHTS], "+adapter=/path/to/folder"
    )


def local_folder(name: str, source: str) -> Path | None:
    """Return the local folder of an adapter, or None for a repository on the hub.

    Raises InvalidInput if it is not a folder and cannot be a repository.
    """
    folder = files.parse_path(source, confined=False)
    if folder.is_dir():
        for path in (folder, *(folder / file for file in (CONFIG, *WEIGHTS))):
            refuse_outside(path)
        return folder
    if source.startswith(("/", ".", "~")) or not hub.REPOSITORY.fullmatch(source):
        raise InvalidInput(
            f"'{name}': adapter folder '{source}' does not exist. Expected a folder that peft's "
            "save_pretrained wrote, or OWNER/NAME from the hub."
        )
    return None


def merge(name: str, model: TransformersModel, folder: Path) -> list[Path]:
    """Merge an adapter into a model, and return the files and folders that it depends on.

    Args:
        name: The name that the user typed.
        model: The base model on the CPU, whose weights are changed.
        folder: The folder that `find` returned.

    Raises:
        InvalidInput: The settings request more than a plain LoRA adapter, or the weights do not fit the model.
    """
    import peft

    config = folder / CONFIG
    settings = _settings(name, hub.read_json(config, dict))
    weights = next((folder / file for file in WEIGHTS if (folder / file).is_file()), None)
    if weights is None:
        raise InvalidInput(
            f"'{name}': adapter folder '{folder}' has no weights. Expected {' or '.join(WEIGHTS)}."
        )
    state = read_weights(weights, confined=False)  # `find` checked where it is
    if not hasattr(model, model.base_model_prefix):
        # It may have had a head in training
        with_head = re.compile(rf"^base_model\.model\.{re.escape(model.base_model_prefix)}\.")
        state = {with_head.sub("base_model.model.", key): tensor for key, tensor in state.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # missing tensors become an error below
        lora = peft.get_peft_model(model, peft.LoraConfig(**msgspec.structs.asdict(settings)))
        loading = peft.set_peft_model_state_dict(lora, state)
    missing = [key for key in loading.missing_keys if "lora_" in key] + loading.unexpected_keys
    if missing:
        raise InvalidInput(
            f"'{name}': the adapter in '{folder}' does not fit the base model, which has no "
            f"counterpart for {len(missing)} tensors of the adapter (first: {missing[0]}). "
            "Expected an adapter of this base model."
        )
    lora.merge_and_unload(safe_merge=True)
    return hub.sources(folder)


def _settings(name: str, content: dict[str, object]) -> AdapterSettings:
    """Check the content of adapter_config.json."""
    used = {
        key: content[key]
        for key in AdapterSettings.__struct_fields__
        if content.get(key) is not None
    }
    start = content.get("init_lora_weights")
    if start not in KEEPS_BASE:
        raise InvalidInput(
            f"'{name}' sets 'init_lora_weights' in {CONFIG} to {start!r:.40}, which changes the base model. "
            "Expected a plain LoRA adapter. Convert it with peft: save_pretrained with "
            "path_initial_model_for_weight_conversion."
        )
    others = content.keys() - used.keys() - WITHOUT_EFFECT - {"init_lora_weights"}
    for key in sorted(others):
        if content[key]:
            raise InvalidInput(
                f"'{name}' sets '{key}' in {CONFIG}, which is not allowed. Expected a plain "
                "LoRA adapter with only these settings: "
                f"{', '.join(AdapterSettings.__struct_fields__)}."
            )
    try:
        return msgspec.convert(used, AdapterSettings)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"'{name}': {CONFIG} does not describe a LoRA adapter ({error}). Expected a folder "
            "that peft's save_pretrained wrote."
        ) from None
