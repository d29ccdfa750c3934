"""Generative transformers models that take pictures: hf-gen:OWNER/NAME from the hub, or hf-gen:FOLDER from disk.

    +choice          ask "Which caption describes this picture?" for each foil, with the captions in both orders
    +template=TEXT   the question, which is all text after the equals sign, with {} for the caption, or two {} with
                     +choice

A score is the probability of "yes" against "no" as the first word of the answer to a question. All other answers that
the model could give are ignored. With `+choice`, the first word is "A" or "B", and only right or wrong answers are
counted. Cases other than a picture with two captions are then unknown.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.models import frozen, hub
from vlprobe.models.frozen import FINGERPRINT_TEXTS
from vlprobe.models.modules import TransformersModel
from vlprobe.models.scores import ASKED_TWICE
from vlprobe.scoring import pictures
from vlprobe.storage import files
from vlprobe.types import Capabilities, CaseAnswerer, Picture, Reader, SideBySideMatcher

if TYPE_CHECKING:
    import pyarrow as pa
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
CHOICE = "Which caption describes this picture? A: '{}' B: '{}' Answer A or B."
YES_NO = (("Yes", "yes", "YES", " Yes", " yes"), ("No", "no", "NO", " No", " no"))
ONE_TWO = (("1", " 1"), ("2", " 2"))
QUESTION_COLUMNS = ("images", "texts", "roles")
A_B = (("A", " A"), ("B", " B"))
# Of a model before it is loaded, without and with +choice
ANSWERS = Capabilities(scores_pairs=True, matches_side_by_side=True, score_type="probability")
CHOOSES = Capabilities(answers_cases=True, chooses=True, n_orders=2, score_type="verdict")
PREFIX = "hf-gen"
NAMES = (  # examples: any repository or folder with a generative model can be typed
    "hf-gen:llava-hf/llava-1.5-7b-hf",
    "hf-gen:Qwen/Qwen2-VL-2B-Instruct",
    "hf-gen:HuggingFaceTB/SmolVLM-Instruct",
)
OPTION = re.compile(r"(.*?)(\+choice)?(?:\+template=(.*))?", re.DOTALL)
LONGEST_TEMPLATE = 500  # characters


class GenerativeName(NamedTuple):
    """The parsed name of a generative model."""

    base: str  # the name without options
    question: str
    chooses: bool


def parse(name: str) -> GenerativeName:
    """Parse a name. The name of a folder that exists as written may contain a plus sign. Raises InvalidInput."""
    prefix, _, text = name.partition(":")
    match = OPTION.fullmatch(text)
    if match is None or files.parse_path(text, confined=False).is_dir():
        return GenerativeName(name, QUESTION, False)
    default = CHOICE if match[2] else QUESTION
    question = default if match[3] is None else match[3]
    check_template(name, question, default.count("{}"))
    return GenerativeName(f"{prefix}:{match[1]}", question, bool(match[2]))


def check_template(name: str, template: str, n_captions: int) -> None:
    """Raise InvalidInput unless a question template has one {} for each caption, and no other braces."""
    is_plain = template.isprintable() and not re.search("[{}]", template.replace("{}", ""))
    if not is_plain or template.count("{}") != n_captions or len(template) > LONGEST_TEMPLATE:
        places = " and ".join(["{}"] * n_captions)
        raise InvalidInput(
            f"'{template[:80]}' is not a question template of '{name[:80]}'. Expected one line of at "
            f"most {LONGEST_TEMPLATE} characters with {places} in place of the caption, such as "
            "+template=Is this {}? Yes or no."
        )


class Generator(SideBySideMatcher):
    """A generative model that receives one question at a time, so that neighbors in a batch cannot change an answer.

    Args:
        source: The name, folder and settings of the model; the weights have its precision.
        model: The model on the CPU; it is moved to the device.
        processor: The tokenizer, image processor and chat template.
        question: The question, with {} for each caption.

    Raises:
        InvalidInput: The model has no chat template, or the two answers do not begin with different tokens.
    """

    def __init__(
        self,
        source: hub.ModelSource,
        model: TransformersModel,
        processor: "ProcessorMixin",
        question: str,
    ) -> None:
        self.name, self.device, self.precision = source.name, source.device, source.precision
        self._processor, self.question = processor, question
        if not getattr(processor, "chat_template", None):
            raise InvalidInput(
                f"'{self.name}' has no chat template, so no prompts can be built for it. Choose a "
                "model with a chat template."
            )
        self._yes_no, self._one_two = (
            self._first_tokens(variants) for variants in (YES_NO, ONE_TWO)
        )
        image = processor.image_processor
        tokens = processor.tokenizer(list(FINGERPRINT_TEXTS))["input_ids"]
        covered = hub.description(source, image, tokens)
        covered["asked"] = [self._prompt(question), self._prompt(MATCHING), YES_NO, ONE_TWO]
        self.digest = frozen.digest(covered, model)
        self._model = model.to(source.device)
        self.note = f"asked: {question.replace('{}', '...')}"

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model, which scores pairs and matches captions to two pictures side by side."""
        return replace(ANSWERS, device=self.device, precision=self.precision)

    def facts(self) -> dict[str, str]:
        """Describe the loaded model, as a dictionary from subject to text."""
        return hub.facts(self._model, self._processor.tokenizer, self._processor.image_processor)

    def preprocess(self, image: Image.Image) -> np.ndarray:
        """Convert an RGB PIL image to uint8 with shape (height, width, 3). The processor combines it with the question
        later.
        """
        return np.asarray(image)

    def encode_pictures(self, pixels: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the pictures unchanged."""
        return list(pixels)

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Encode texts as int64 with shape (n, columns), one number per character. The full question is tokenized
        later, when the model is asked.
        """
        return frozen.padded([[ord(letter) for letter in text] for text in texts])

    def match(
        self, encoded: Sequence[np.ndarray], tokens: np.ndarray, logits: bool = False
    ) -> np.ndarray:
        """Return the probability of yes against no, or the log-odds, float32 with shape (n,)."""
        texts = ["".join(map(chr, row[row != frozen.PAD])) for row in tokens]
        odds = [
            self._log_odds(Image.fromarray(pixels), self.question.format(text), self._yes_no)
            for pixels, text in zip(encoded, texts, strict=True)
        ]
        log_odds = np.array(odds, dtype=np.float64)
        return (log_odds if logits else 1 / (1 + np.exp(-log_odds))).astype(np.float32)

    def first_is_left(
        self, left: Image.Image, right: Image.Image, caption_a: str, caption_b: str
    ) -> float:
        """Return the probability, 0 to 1, that the model matches the first caption to the left one of two
        pictures side by side.

        Args:
            left: The left picture.
            right: The right picture, which is scaled to the height of the left one.
            caption_a: The caption that is named first.
            caption_b: The caption that is named second.

        Source: EqBen, section 5.5. The question is the paper's, but the answer is not read by people. It
            is the probability of "1" against "2" as the first word.
        """
        width = max(1, round(right.width * left.height / right.height))
        both = Image.new("RGB", (left.width + width, left.height))
        both.paste(left, (0, 0))
        both.paste(right.resize((width, left.height), Image.Resampling.BICUBIC), (left.width, 0))
        odds = self._log_odds(both, MATCHING.format(caption_a, caption_b), self._one_two)
        return float(1 / (1 + np.exp(-odds)))

    def first_is_true(self, image: Image.Image, first: str, second: str) -> float:
        """Return the probability, 0 to 1, that the model chooses the first of two captions for a picture."""
        letters = self._first_tokens(A_B)
        odds = self._log_odds(image, self.question.format(first, second), letters)
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
        """Return the token ids that each of two answers can begin with, without ids that can begin both."""
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


class Chooser(CaseAnswerer):
    """A generative model that chooses between two captions for a picture. It is asked with both caption orders.

    Args:
        generator: The model, with a question for two captions.
    """

    def __init__(self, generator: Generator) -> None:
        self.name, self._generator, self.n_scores = generator.name, generator, 0
        self.digest = pictures.digest(f"choice {A_B} {generator.digest}".encode())
        self.note = f"{generator.note}; {ASKED_TWICE}; margins are unknown"
        # `answers` and `orders` for the same cases share two forward passes
        self._verdicts: dict[tuple[str, str, str], tuple[float, float]] = {}

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model, which gives a right or wrong answer for each order of the captions."""
        return replace(CHOOSES, device=self._generator.device, precision=self._generator.precision)

    def facts(self) -> dict[str, str]:
        """Describe the loaded model, as a dictionary from subject to text."""
        return self._generator.facts()

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Encode texts as int64 with shape (n, columns), one number per character."""
        return self._generator.tokenize(texts)

    def check_cases(self, cases: Reader) -> str:
        """Return a note about cases that are not a choice of two captions. Raises InvalidInput if no case is."""
        questions = [
            question for block in cases(QUESTION_COLUMNS) for question in _questions(block)
        ]
        self.n_scores = 2 * sum(question is not None for question in questions)
        if not self.n_scores:
            raise InvalidInput(
                f"'{self.name}' chooses between one true and one wrong caption of a picture, but "
                "no case has exactly these two. Choose another probe, such as eqben with foils, "
                "or remove +choice."
            )
        n_unknown = questions.count(None)
        return f"{n_unknown:,} cases are not a choice of two captions: unknown" if n_unknown else ""

    def answers(self, cases: "pa.Table") -> np.ndarray:
        """Return the share of orders in which each caption was chosen, float32 with shape (n_pairs,)."""
        lengths = [cases[name].combine_chunks().value_lengths() for name in ("images", "texts")]
        counts = np.multiply(*(column.to_numpy() for column in lengths)).tolist()
        shares = self.orders(cases).mean(axis=0)
        scores = [
            [np.nan] * count if np.isnan(share) else [share, 1 - share]
            for share, count in zip(shares, counts, strict=True)
        ]
        return np.concatenate([*scores, np.empty(0)]).astype(np.float32)

    def orders(self, cases: "pa.Table") -> np.ndarray:
        """Return whether the model chose the true caption when it was listed first and second, float32, shape (2, n).

        A probability of .5 chooses neither caption and counts as a failure.
        """
        verdicts = np.full((2, len(cases)), np.nan, dtype=np.float32)
        for row, question in enumerate(_questions(cases)):
            if question is None:
                continue
            if question not in self._verdicts:
                picture, true, wrong = question
                image = pictures.open_picture(Picture.from_name(picture))
                first = self._generator.first_is_true(image, true, wrong)
                second = 1 - self._generator.first_is_true(image, wrong, true)
                self._verdicts[question] = float(first > 0.5), float(second > 0.5)
            verdicts[:, row] = self._verdicts[question]
        return verdicts


def _questions(cases: "pa.Table") -> list[tuple[str, str, str] | None]:
    """Return the picture, the true caption and the wrong caption in each case, or None for other kinds of cases."""
    columns = (cases[name].to_pylist() for name in QUESTION_COLUMNS)
    return [
        (images[0], *texts) if len(images) == 1 and roles == ["original", "different"] else None
        for images, texts, roles in zip(*columns, strict=True)
    ]


def _generator(source: hub.ModelSource, question: str) -> Generator:
    import transformers
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as KINDS,
    )

    if source.model_type not in KINDS:
        raise InvalidInput(
            f"'{source.name}' has model type '{source.model_type}' and cannot answer questions "
            "about pictures. Expected a generative model such as llava, qwen2_vl, idefics3 or "
            "smolvlm."
        )
    hub.tokenizer(source.folder)
    processor = hub.processor(source.folder)
    processor.image_processor = hub.image_processor(source.folder)
    architecture = getattr(transformers, KINDS[source.model_type])
    model = hub.load(source.name, architecture, source.folder, hub.DTYPES[source.precision])
    return Generator(source, model, processor, question)


def check_name(name: str) -> None:
    """Raise InvalidInput if the name is not a folder or a possible repository, or an option is not valid."""
    hub.local_folder(parse(name).base)


def named_capabilities(name: str) -> Capabilities:
    """Return the capabilities that a model's name implies."""
    return CHOOSES if parse(name).chooses else ANSWERS


def load(name: str, device: str = "auto", precision: str = "fp32") -> Generator | Chooser:
    """Load a generative model by name. Raises InvalidInput or MissingDependency."""
    parsed = parse(name)
    source = hub.locate(name, device, precision, parsed.base)
    with hub.opening(name):
        generator = _generator(source, parsed.question)
        model = Chooser(generator) if parsed.chooses else generator
    model.sources = hub.sources(source.folder)
    return model
