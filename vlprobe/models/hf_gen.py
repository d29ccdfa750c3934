"""Generative models of transformers that see pictures: hf-gen:OWNER/NAME from the hub,
hf-gen:FOLDER from a disk.

A score is the probability of "yes" against "no" as the first word of the answer to a question. All other possible
answers of the model are ignored, and so is the probability that it answers at all.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.models import frozen, hub
from vlprobe.models.frozen import FINGERPRINT_TEXTS
from vlprobe.models.modules import TransformersModel
from vlprobe.types import Capabilities, SideBySideMatcher

if TYPE_CHECKING:
    from transformers import ProcessorMixin

QUESTION = "Does this picture show: '{}'? Answer yes or no."
# EqBen, section 5.5
MATCHING = (
    "There are two images (left and right). Now you have two captions: caption 1: {}; caption 2: "
    "{}. Please indicate which caption corresponds to the left image and which caption "
    "corresponds to the right one. The answer should "
    'follow the format: "#index for the left image; #index for the right image". For example, "1;2" represents that '
    "caption 1 corresponds to image left."
)
YES_NO = (("Yes", "yes", "YES", " Yes", " yes"), ("No", "no", "NO", " No", " no"))
ONE_TWO = (("1", " 1"), ("2", " 2"))


class Generator(SideBySideMatcher):
    """A generative model that receives one question at a time, so that neighbors in a batch cannot change an answer.

    Args:
        source: Its name, folder and settings; the precision is that of its weights.
        model: On the CPU; it is moved to the device.
        processor: Its tokenizer, image processor and chat template.

    Raises:
        InvalidInput: it has no chat template, or its answers do not begin with different tokens.
    """

    def __init__(
        self, source: hub.ModelSource, model: TransformersModel, processor: "ProcessorMixin"
    ) -> None:
        self.name, self.device, self.precision = source.name, source.device, source.precision
        self._processor = processor
        if not getattr(processor, "chat_template", None):
            raise InvalidInput(
                f"'{self.name}' has no chat template, which its prompts need. Expected one."
            )
        self._yes_no, self._one_two = (
            self._first_tokens(variants) for variants in (YES_NO, ONE_TWO)
        )
        image = processor.image_processor
        tokens = processor.tokenizer(list(FINGERPRINT_TEXTS))["input_ids"]
        covered = hub.description(source.config, image, tokens, source.precision)
        covered["asked"] = [self._prompt(QUESTION), self._prompt(MATCHING), YES_NO, ONE_TWO]
        self.digest = frozen.digest(covered, model)
        self._model = model.to(source.device)
        self.note = f"asked: {QUESTION.format('...')}"

    @property
    def capabilities(self) -> Capabilities:
        """Scores of pairs, and which caption belongs to which side."""
        return Capabilities(
            scores_pairs=True,
            matches_side_by_side=True,
            score_type="probability",
            device=self.device,
            precision=self.precision,
        )

    def facts(self) -> dict[str, str]:
        """Describe what was built, by subject."""
        return hub.facts(self._model, self._processor.tokenizer, self._processor.image_processor)

    def preprocess(self, image: Image.Image) -> np.ndarray:
        """Convert an RGB PIL image to uint8 of shape (height, width, 3); the processor combines it with the question
        later.
        """
        return np.asarray(image)

    def encode_pictures(self, pixels: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the pictures unchanged."""
        return list(pixels)

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Encode texts as int64 of shape (n, columns), one number per character; the full question is tokenized when
        it is sent.
        """
        return frozen.padded([[ord(letter) for letter in text] for text in texts])

    def match(
        self, encoded: Sequence[np.ndarray], tokens: np.ndarray, logits: bool = False
    ) -> np.ndarray:
        """Probability of yes against no, or its log-odds, float32 of shape (n,)."""
        texts = ["".join(map(chr, row[row != frozen.PAD])) for row in tokens]
        odds = [
            self._log_odds(Image.fromarray(pixels), QUESTION.format(text), self._yes_no)
            for pixels, text in zip(encoded, texts, strict=True)
        ]
        log_odds = np.array(odds, dtype=np.float64)
        return (log_odds if logits else 1 / (1 + np.exp(-log_odds))).astype(np.float32)

    def first_is_left(
        self, left: Image.Image, right: Image.Image, caption_a: str, caption_b: str
    ) -> float:
        """Probability that it matches the first caption to the left of two pictures side by side, 0
        to 1.

        Args:
            left: A picture.
            right: A picture, scaled to the height of the first.
            caption_a: The caption that is named first.
            caption_b: The caption that is named second.

        Source: EqBen, section 5.5. The question is the paper's; the answer is not read by people
            but is the probability of "1" against "2" as its first word.
        """
        width = max(1, round(right.width * left.height / right.height))
        both = Image.new("RGB", (left.width + width, left.height))
        both.paste(left, (0, 0))
        both.paste(right.resize((width, left.height), Image.Resampling.BICUBIC), (left.width, 0))
        odds = self._log_odds(both, MATCHING.format(caption_a, caption_b), self._one_two)
        return float(1 / (1 + np.exp(-odds)))

    def _prompt(self, question: str) -> str:
        messages = [
            {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": question}]}
        ]
        return self._processor.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )

    def _first_tokens(
        self, variants: tuple[Sequence[str], Sequence[str]]
    ) -> tuple[list[int], list[int]]:
        """Ids that the two answers can begin with, without those that begin both."""
        tokenizer = self._processor.tokenizer
        left, right = (
            {tokenizer.encode(text, add_special_tokens=False)[0] for text in texts}
            for texts in variants
        )
        if not left - right or not right - left:
            raise InvalidInput(
                f"The answers '{variants[0][0]}' and '{variants[1][0]}' of '{self.name}' "
                "begin with the same token, so the model cannot be scored. Expected a "
                "tokenizer with different first tokens."
            )
        return sorted(left - right), sorted(right - left)

    def _log_odds(
        self, image: Image.Image, question: str, answers: tuple[list[int], list[int]]
    ) -> float:
        import torch

        inputs = self._processor(
            images=[image],
            text=[self._prompt(question)],
            return_tensors="pt",  # type: ignore[call-arg] - its own signature leaves it out
        ).to(self.device)
        with frozen.arithmetic(self.device, self.precision):
            logits = self._model(**inputs).logits[0, -1].double()
        left, right = (torch.logsumexp(logits[ids], dim=0) for ids in answers)
        return float(left - right)


def _generator(source: hub.ModelSource) -> Generator:
    import transformers
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as KINDS,
    )

    if source.model_type not in KINDS:
        raise InvalidInput(
            f"'{source.name}' is a model of type '{source.model_type}' and cannot answer "
            "questions about pictures. Expected a generative model such as llava, "
            "qwen2_vl, idefics3 or smolvlm."
        )
    hub.tokenizer(source.folder)
    processor = hub.processor(source.folder)
    processor.image_processor = hub.image_processor(source.folder)
    architecture = getattr(transformers, KINDS[source.model_type])
    model = hub.load(source.name, architecture, source.folder, hub.DTYPES[source.precision])
    return Generator(source, model, processor)


FAMILIES = (
    hub.HubFamily(
        "hf-gen",
        (
            "llava-hf/llava-1.5-7b-hf",
            "Qwen/Qwen2-VL-2B-Instruct",
            "HuggingFaceTB/SmolVLM-Instruct",
        ),
        _generator,
    ),
)
