"""Checks for the files in a model folder. The libraries that load the folder may only read tensors and vocabularies.

A folder is untrusted input. Its JSON files reach transformers, sentence-transformers, OpenCLIP and timm. If a file
requests it, these libraries import Python from the folder, fetch repositories from the hub, run kernels from the hub,
unpickle, or open paths outside the folder. `check_folder` reads every JSON file before any of these libraries does, and
rejects a file that needs more than a built-in architecture with its weights. `trust_remote_code=False` is passed as a
second, independent safeguard.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage import files
from vlprobe.storage.access import refuse_outside

# levels of subfolders that any loader reads: modules of sentence-transformers, tokenizers of
# processors
DEPTH = 2
MOST_FILES = 10_000  # files in a folder; a model has a few dozen
CODE = "requests to run code shipped with its weights"
KERNELS = "requests to run kernels from a repository"
ELSEWHERE = "refers to files outside its folder"
# Vocabularies are large and contain no settings; only token parsers read them
VOCABULARIES = ("tokenizer.json", "vocab.json", "added_tokens.json", "data_config.json")
LABELS = ("id2label", "label2id")  # any word may be a key there
FORBIDDEN_FILES = {"audio_tokenizer_config.json": ELSEWHERE}
# Settings that are rejected at any depth in any file
FORBIDDEN = {
    "auto_map": CODE,
    "trust_remote_code": CODE,
    "custom_generate": CODE,
    "custom_pipelines": CODE,
    "use_kernels": KERNELS,
    "allow_all_kernels": KERNELS,
    "kernel_config": KERNELS,
    "quantization_config": KERNELS,  # each method brings kernels, half of them from the hub
    "compression_config": KERNELS,
    "hf_model_name": ELSEWHERE,  # OpenCLIP: the text tower's config is fetched
    "tokenizer_name_or_path": ELSEWHERE,  # sentence-transformers
    "audio_tokenizer": ELSEWHERE,
    "audio_tokenizer_name_or_path": ELSEWHERE,
    "backbone": ELSEWHERE,  # transformers queries the hub for a repository of that name
    "repo_path": ELSEWHERE,  # OneFormer's class names
    "class_info_file": ELSEWHERE,
    "checkpoint_path": ELSEWHERE,  # timm, by way of model_args
    "pretrained_cfg_overlay": ELSEWHERE,
    "bpe_path": ELSEWHERE,  # OpenCLIP's vocabulary
    "gguf_file": ELSEWHERE,
    "mecab_kwargs": ELSEWHERE,  # dictionaries of Japanese tokenizers
    "sudachi_kwargs": ELSEWHERE,
    "jumanpp_kwargs": ELSEWHERE,
}
# Architectures that transformers builds with kernels from the hub
KERNEL_ARCHITECTURES = ("rwkv", "yoso", "mra", "sam3_video")
# flash attention that is not installed is fetched as a kernel
ATTENTION = ("eager", "sdpa", "flex_attention")
EXPERTS = ("eager", "batched_mm", "grouped_mm")
IMPLEMENTATIONS = {
    "attn_implementation": ATTENTION,
    "_attn_implementation": ATTENTION,
    "_attn_implementation_internal": ATTENTION,
    "experts_implementation": EXPERTS,
    "_experts_implementation": EXPERTS,
    "_experts_implementation_internal": EXPERTS,
}
FILE_NAME = r"(?!\.{1,2}$)[^/\\\0]+"
PROCESSOR = r"(?!Auto|OneFormer|Pix2Struct)\w+(ImageProcessor|FeatureExtractor)(Fast|Pil)?"
# The pattern that each name must match, and the reason for rejecting any other name. transformers looks up a class in
# all of its modules, so a name could also be AutoModel, RagRetriever (which unpickles) or a processor that downloads.
NAMES = {
    "tokenizer_class": (
        r"(?!Auto|Rag)\w+Tokenizer(Fast)?|(Tokenizers|Python|SentencePiece|MistralCommon)Backend",
        CODE,
    ),
    "processor_class": (r"(?!Auto|Mgpstr)\w+Processor", CODE),
    "image_processor_type": (PROCESSOR, CODE),
    "feature_extractor_type": (PROCESSOR, CODE),
    "video_processor_type": (r"(?!Auto)\w+VideoProcessor(Fast)?", CODE),
    "activation_function": (r"(torch\.nn(\.\w+)+)?|\w+", CODE),  # sentence-transformers imports it
    "timm_model_name": (r"[\w.-]*", ELSEWHERE),
    "transformers_weights": (FILE_NAME, ELSEWHERE),
    "use_timm_backbone": (r"(?!)", ELSEWHERE),  # false makes transformers look for it at the hub
}
# The only keyword arguments that a file may pass on, with plain values
TOKENIZER_ARGUMENTS = ("clean", "strip_sep_token", "language", "trust_remote_code")
TRANSFORMER_ARGUMENTS = (
    *("dtype", "torch_dtype", "attn_implementation", "model_max_length", "padding_side"),
    *("truncation_side", "use_fast", "do_lower_case", "min_pixels", "max_pixels"),
    "trust_remote_code",
)
SENTENCE_CONFIG = re.compile(r"sentence_[\w-]+_config\.json")
SENTENCE_ARGUMENTS = (
    *("model_args", "model_kwargs", "tokenizer_args"),
    *("processor_kwargs", "config_args", "config_kwargs"),
)
# The allowed processing_kwargs, which reach a processor with every text and picture
PROCESSING_ARGUMENTS = (
    *("padding", "truncation", "max_length", "add_generation_prompt"),
    *("restore_suffix", "min_pixels", "max_pixels"),
)
# Methods that sentence-transformers may call on a model, because it calls any name in the file
METHODS = ("forward", *(f"get_{side}_features" for side in ("text", "image", "audio", "video")))
SENTENCE_MODULES = re.compile(
    r"sentence_transformers(\.\w+)*\.(Transformer|Pooling|Normalize|Dense|LayerNorm|Dropout|CLIPModel)"
)
SETTINGS = re.compile(r"config|^modules\.json$|\.index\.json$")
SUBFOLDER = re.compile(r"(\w[\w.-]*)?/?")
SCHEME = re.compile(r"\s*(hf[-_]hub|local-dir)\s*:", re.IGNORECASE)


def check_folder(name: str, folder: Path, confined: bool = True) -> None:
    """Raise InvalidInput if a file in the folder requests more than its tensors and vocabularies.

    Args:
        name: The name that the user typed.
        folder: The folder of a model, in any layout.
        confined: Whether the resolved paths must be below the folders that the dashboard may read. False for a
            snapshot that was just downloaded to the hub cache.
    """
    if confined:
        refuse_outside(folder)
    for path in _walk(name, folder):
        if confined:
            refuse_outside(path)
        file = path.relative_to(folder).as_posix()
        if path.name == "adapter_config.json":
            raise InvalidInput(
                f"'{name}': '{folder}' contains an adapter ({file}) for another model. "
                "Expected a complete model. To apply an adapter to a text encoder, write "
                "st:BASE+adapter=FOLDER."
            )
        if path.name in FORBIDDEN_FILES:
            raise _refused(name, FORBIDDEN_FILES[path.name], path.name, file)
        if path.suffix == ".json" and path.name not in VOCABULARIES:
            _check_file(name, file, path)


def _walk(name: str, folder: Path) -> Iterator[Path]:
    """Yield every file down to DEPTH and follow links. Hidden folders are skipped, because no loader reads them."""
    count = 0
    for root, folders, names in os.walk(folder, followlinks=True):
        below = len(Path(root).relative_to(folder).parts)
        visible = sorted(folder for folder in folders if not folder.startswith("."))
        folders[:] = visible if below < DEPTH else []
        count += len(names)
        if count > MOST_FILES:
            raise InvalidInput(
                f"'{name}': '{folder}' contains more than {MOST_FILES:,} files. Expected "
                "a folder with a single model."
            )
        yield from (Path(root, file) for file in sorted(names))


def _check_file(name: str, file: str, path: Path) -> None:
    try:
        content = files.parse_json(files.read(path).decode())
    except (OSError, ValueError) as error:
        if not SETTINGS.search(path.name):
            return  # the libraries cannot read it either
        raise InvalidInput(
            f"'{path}' cannot be read as JSON ({getattr(error, 'strerror', None) or error}). "
            "Expected model settings. Fix or delete the file."
        ) from None
    if path.name.endswith(".index.json"):
        _check_shards(name, file, content)
        return
    if path.name == "modules.json":
        check_modules(name, content)
    check_settings(name, file, content)
    if SENTENCE_CONFIG.fullmatch(path.name):
        for key, value in _entries(content):
            if key in SENTENCE_ARGUMENTS:
                _check_arguments(name, key, value, TRANSFORMER_ARGUMENTS, file)
            if key == "method" and value not in METHODS:
                raise _refused(name, CODE, f"method: {value}"[:200], file)
            if key == "processing_kwargs":
                for side, arguments in value.items() if isinstance(value, Mapping) else ():
                    _check_arguments(name, side, arguments, PROCESSING_ARGUMENTS, file)


def check_settings(name: str, file: str, content: object) -> None:
    """Raise InvalidInput if an entry at any depth requests code, kernels or files from elsewhere.

    Args:
        name: The name that the user typed.
        file: The location of the settings, for the error message.
        content: The content of a JSON file, or the metadata in a checkpoint.
    """
    for key, value in _entries(content):
        if isinstance(value, str) and SCHEME.match(value):
            raise _refused(name, ELSEWHERE, value, file)
        # A number may be a token id, but 1 can also turn on code.
        is_id = FORBIDDEN.get(key) == ELSEWHERE and isinstance(value, int | float)
        if key in FORBIDDEN and value and not is_id:
            raise _refused(name, FORBIDDEN[key], key, file)
        if reason := _broken_rule(key, value):
            raise _refused(name, reason, f"{key}: {value}"[:200], file)
        if key == "tokenizer_kwargs":
            _check_arguments(name, key, value, TOKENIZER_ARGUMENTS, file)


def _entries(content: object) -> Iterator[tuple[str, object]]:
    """Yield every key with its value, at any depth. Items in a list are yielded with the key of the list."""
    pending = [("", content)]
    while pending:
        key, value = pending.pop()
        yield key, value
        if isinstance(value, Mapping):
            pending += () if key in LABELS else value.items()
        elif isinstance(value, list):
            pending += ((key, item) for item in value)


def _broken_rule(key: str, value: object) -> str | None:
    """Return the reason why a setting is rejected, or None if its value is allowed or not set."""
    if value is None:
        return None
    if key in IMPLEMENTATIONS:
        names = value.values() if isinstance(value, Mapping) else [value]
        is_known = all(name is None or name in IMPLEMENTATIONS[key] for name in names)
        return None if is_known else KERNELS
    if key == "model_type":
        return KERNELS if value in KERNEL_ARCHITECTURES else None
    if key in NAMES:
        pattern, reason = NAMES[key]
        return None if isinstance(value, str) and re.fullmatch(pattern, value) else reason
    return None


def _check_arguments(
    name: str, key: str, value: object, allowed: tuple[str, ...], file: str
) -> None:
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise _refused(name, CODE, key, file)
    for argument, setting in value.items():
        if argument not in allowed or isinstance(setting, Mapping | list):
            raise InvalidInput(
                f"'{name}' sets '{argument}' under {key} in {file}. This argument is not allowed "
                "because it could make the model library run code or open other files. Allowed "
                f"arguments: {', '.join(name for name in allowed if 'trust' not in name)}."
            )


def _check_shards(name: str, file: str, content: object) -> None:
    shards = content.get("weight_map") if isinstance(content, Mapping) else None
    if not isinstance(shards, Mapping):
        raise InvalidInput(
            f"'{name}': {file} has no 'weight_map', which maps each tensor to its file."
        )
    for shard in shards.values():
        if not isinstance(shard, str) or not re.fullmatch(FILE_NAME, shard):
            raise _refused(name, ELSEWHERE, str(shard)[:200], file)


def check_modules(name: str, modules: object) -> None:
    """Raise InvalidInput if modules.json names a class that is not allowed, or a path outside the folder.

    Args:
        name: The name that the user typed.
        modules: The content of modules.json in a folder with the sentence-transformers layout.
    """
    listed = modules if isinstance(modules, list) else []
    if not listed or not all(isinstance(module, Mapping) for module in listed):
        raise InvalidInput(
            f"'{name}': modules.json lists no modules. Expected a list of objects with "
            "type and path."
        )
    for module in listed:
        kind, path = module.get("type"), module.get("path")
        if not isinstance(kind, str) or not SENTENCE_MODULES.fullmatch(kind):
            raise _refused(name, CODE, str(kind)[:200], "modules.json")
        if not isinstance(path, str) or not SUBFOLDER.fullmatch(path):
            raise _refused(name, ELSEWHERE, str(path)[:200], "modules.json")


def _refused(name: str, reason: str, value: str, file: str) -> InvalidInput:
    if reason == CODE:
        advice = "Use a model whose architecture is part of the libraries."
    elif reason == KERNELS:
        advice = (
            "Use floating-point weights and one of these attention implementations: "
            f"{', '.join(ATTENTION)}; or remove the entry."
        )
    else:
        advice = "Expected a complete folder: put those files into it, and remove the entry."
    return InvalidInput(f"'{name}' {reason} ('{value}' in {file}), which is rejected. {advice}")
