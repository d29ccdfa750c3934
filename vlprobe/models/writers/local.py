"""A writer on this machine: hf-gen:OWNER/NAME or hf-gen:FOLDER, any model of transformers that continues texts
and has a chat template, with or without pictures. It receives one prompt at a time: neighbors in a batch cannot
change an answer.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vlprobe.errors import InvalidInput
from vlprobe.models import frozen, hub
from vlprobe.models.endpoint.budget import Budget
from vlprobe.models.endpoint.served import Reporter
from vlprobe.models.modules import TransformersModel
from vlprobe.models.writers.prompts import Prompt, WriterLog
from vlprobe.scoring import pictures
from vlprobe.storage import mine
from vlprobe.storage.answer_log import FOLDER

VERSION = 1  # of the way in which it is prompted


class LocalWriter:
    """A model of transformers that writes.

    Args:
        name: The name that the user typed.
        model: On the CPU; it is moved to the device.
        tokenizer: Its tokenizer, with or without the chat template.
        template: The processor or the tokenizer, whichever has the chat template.
        device: The return value of `frozen.pick_device`.
        precision: The precision of the weights.
    """

    def __init__(
        self,
        name: str,
        model: TransformersModel,
        tokenizer: Any,
        template: Any,
        device: str,
        precision: str,
    ) -> None:
        self.name, self._device, self._precision = name, device, precision
        self._tokenizer, self._template = tokenizer, template
        if not getattr(template, "chat_template", None):
            raise InvalidInput(
                f"'{name}' has no chat template, which its prompts need. Expected one."
            )
        words = tokenizer(list(frozen.FINGERPRINT_TEXTS))["input_ids"]
        config = {
            key: value
            for key, value in model.config.to_dict().items()
            if key not in ("_name_or_path", "transformers_version")
        }
        described = ["writes", VERSION, config, template.chat_template, words, precision]
        self.digest = frozen.digest({"described": described}, model)
        self.maker = f"{name}, weights {self.digest[:12]}"
        self._model = model.to(device)

    def open(self, cache: Path, budget: Budget, reporter: Reporter) -> None:
        """Do nothing: a local writer costs no money."""
        self._reporter = reporter
        folder = mine.path(cache, FOLDER) / pictures.digest(f"writes {self.digest}".encode())
        self.log = WriterLog(folder)

    def ask(self, prompts: Sequence[Prompt]) -> None:
        """Answers, one after the other."""
        for number, prompt in enumerate(prompts):
            self._reporter.update(f"Asking {self.name}", number, len(prompts))
            self.log.append((prompt.name,), self._answered(prompt))

    def _answered(self, prompt: Prompt) -> str:
        """An answer as a server gives it."""
        import torch
        from transformers import GenerationConfig

        ids = self._tokenizer(
            self._written(prompt), return_tensors="pt", add_special_tokens=False
        ).to(self._device)
        settings = self._model.generation_config
        how: dict[str, Any] = {"do_sample": False}
        if prompt.temperature > 0:
            how = {"do_sample": True, "temperature": prompt.temperature, "top_k": 0, "top_p": 1.0}
        generation = GenerationConfig(
            max_new_tokens=prompt.max_tokens,
            eos_token_id=settings.eos_token_id or self._tokenizer.eos_token_id,
            pad_token_id=settings.pad_token_id or self._tokenizer.pad_token_id,
            **how,
        )
        devices = [self._device] if self._device.startswith("cuda") else []
        with (
            torch.random.fork_rng(devices=devices),
            frozen.arithmetic(self._device, self._precision),
        ):
            torch.manual_seed(prompt.seed)
            ids.pop("token_type_ids", None)
            rows = self._model.generate(**ids, generation_config=generation)
        new = rows[0, ids["input_ids"].shape[1] :]
        content = self._tokenizer.decode(new, skip_special_tokens=True)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": content},
            "finish_reason": "length" if len(new) >= prompt.max_tokens else "stop",
        }
        usage = {"prompt_tokens": ids["input_ids"].shape[1], "completion_tokens": len(new)}
        body = {"model": self.name, "created": int(time.time()), "choices": [choice]}
        return json.dumps(body | {"usage": usage}, ensure_ascii=False)

    def _written(self, prompt: Prompt) -> str:
        """Return the prompt as the chat template lays it out."""
        messages: list[dict[str, Any]] = [dict(message) for message in prompt.messages]
        if self._template is not self._tokenizer:  # a processor's template expects parts
            for message in messages:
                message["content"] = [{"type": "text", "text": message["content"]}]
        return self._template.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )


def load(name: str, device: str = "auto", precision: str = "fp32") -> LocalWriter:
    """Return the model of that name. Raises InvalidInput or MissingDependency."""
    source = hub.locate(name, device, precision)
    import transformers
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as TEXT_KINDS,
    )
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as PICTURE_KINDS,
    )

    kind, folder = source.model_type, source.folder
    architecture = PICTURE_KINDS.get(kind) or TEXT_KINDS.get(kind)
    if not architecture:
        raise InvalidInput(
            f"'{name}' is a model of type '{kind}' and writes no texts. Expected a generative model such as llama, "
            "qwen2, llava or smolvlm."
        )
    with hub.opening(name):
        tokenizer: Any = hub.tokenizer(folder)
        template = hub.processor(folder) if kind in PICTURE_KINDS else tokenizer
        dtype = hub.DTYPES[source.precision]
        model = hub.load(name, getattr(transformers, architecture), folder, dtype)
        return LocalWriter(name, model, tokenizer, template, source.device, source.precision)
