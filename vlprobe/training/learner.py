"""A single training step: embed a batch, compute the terms of the loss, and update the weights."""

import math
import statistics
import time
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

from vlprobe.errors import InvalidInput
from vlprobe.models.modules import OpenClipModel, TorchModel
from vlprobe.training import objective
from vlprobe.training.batches import Batch
from vlprobe.training.objective import Settings

if TYPE_CHECKING:
    import torch

# CLIP keeps its logit scale below this value; a model that starts above it may keep its own
HIGHEST_SCALE = 100
PICTURE_WORDS = ("visual", "vision", "image")  # in the names of a picture tower's parameters
_BETAS = (0.9, 0.98)
_TIMED_PAIRS = 5


def tower_of(parameter: str) -> str:
    """Return the tower that a parameter belongs to: "image", "text", or "" for the logit scale and bias.

    >>> tower_of("visual.conv1.weight"), tower_of("model.text_proj.bias"), tower_of("logit_scale")
    ('image', 'text', '')
    """
    if "logit_" in parameter:
        return ""
    return "image" if any(word in parameter for word in PICTURE_WORDS) else "text"


def optimizer(model: TorchModel, rate: float, decay: float) -> "torch.optim.AdamW":
    """Create an AdamW optimizer for the trainable parameters. Biases, gains and the logit scale do not decay."""
    import torch

    learned = [value for value in model.parameters() if value.requires_grad]
    groups = [
        {"params": [value for value in learned if value.ndim >= 2], "weight_decay": decay},
        {"params": [value for value in learned if value.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=_BETAS)


def schedule(step: int, of: int, warm_up: int) -> float:
    """Return the learning rate factor at a step, counted from 0: a linear warm-up, then a cosine decay to zero."""
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, of - warm_up)))


def keep_scale(scale: "torch.Tensor", highest: float) -> None:
    """Clamp a logit scale, which is stored as its logarithm, to between 1 and `highest`, as in the CLIP paper."""
    import torch

    with torch.no_grad():
        scale.clamp_(0, math.log(highest))


class Learner:
    """A model in training, with its optimizer and loss.

    Args:
        model: An OpenCLIP model or a `hub_models.Trainable`, on its device. It is trained in place. A
            matching head learns from the log-odds of every picture and text in a batch.
        weights: The weight of each loss term.
        settings: The settings of the loss terms.
        rate: The highest learning rate.
        decay: The weight decay.
        warm_up, steps: The length of the warm-up and of the whole training run, in steps.
        freeze: The tower to freeze, "image" or "text", or "" for none.
        precision: "fp32", or "fp16" or "bf16" for autocast. Losses are computed in float32.
        piece: How many pictures or texts go through a tower at once; 0 means all.

    Raises:
        InvalidInput: The sigmoid loss was requested for a model without a logit bias, or a matching
            head was combined with a loss that compares embeddings, a frozen tower, or pieces.
    """

    def __init__(
        self,
        model: OpenClipModel,
        weights: Mapping[str, float],
        settings: Settings,
        *,
        rate: float,
        decay: float,
        warm_up: int,
        steps: int,
        freeze: str = "",
        precision: str = "fp32",
        piece: int = 0,
    ) -> None:
        import torch

        if "sigmoid" in weights and getattr(model, "logit_bias", None) is None:
            raise InvalidInput(
                "This model has no logit bias, which the loss 'sigmoid' needs. Train it with 'clip'."
            )
        self._match = getattr(model, "match", None) if getattr(model, "has_head", False) else None
        if self._match and (weights.keys() - objective.MATCHING or freeze or piece):
            raise InvalidInput(
                "A matching head compares whole pictures and texts. Expected a loss made up of "
                f"{', '.join(objective.MATCHING)}, and neither --freeze nor --piece."
            )
        self.model = model.eval().requires_grad_(True)
        for name, value in model.named_parameters():
            if freeze and tower_of(name) == freeze:
                value.requires_grad_(False)
        self.optimizer = optimizer(model, rate, decay)
        self._device = self.model.logit_scale.device
        self._dtype = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]
        self.scaler = torch.amp.GradScaler(self._device.type, enabled=precision == "fp16")
        self._weights, self._settings, self._piece = weights, settings, piece
        self._rate, self._warm_up, self._steps = rate, warm_up, steps
        self._highest = max(HIGHEST_SCALE, float(self.model.logit_scale.detach().exp()))

    def learn(self, batch: Batch, step: int) -> dict[str, float]:
        """Run one training step, counted from 0, and update the weights.

        With pieces, both towers run twice. The first pass runs without gradients, to get the embeddings
        of the whole batch and their gradients. The second pass propagates these gradients piece by piece.
        The result is the same as without pieces.

        Returns:
            The loss, each loss term before weighting, and the learning rate.

        Raises:
            InvalidInput: The loss is not finite.
        """
        rate = self._rate * schedule(step, self._steps, self._warm_up)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        total, loss_parts = self._backward(batch, self._weights.keys(), step)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        keep_scale(self.model.logit_scale, self._highest)
        return {
            "loss": total.item(),
            **{name: value.item() for name, value in loss_parts.items()},
            "rate": rate,
        }

    def added_time(self, batch: Batch) -> float:
        """Measure how much longer the forward and backward pass of a batch takes than with the retrieval loss only.

        The weights do not change. Both kinds of passes alternate, so that other work on the machine slows both.

        Returns:
            The median of the relative differences: 0.05 means 5 % longer. NaN if the loss has no other term.
        """
        retrieval = self._weights.keys() & set(objective.RETRIEVAL)
        if retrieval == self._weights.keys():
            return math.nan
        plain = batch.without_alterations()
        ratios = []
        for _ in range(_TIMED_PAIRS + 1):
            begun = time.perf_counter()
            self._finish_backward(plain, retrieval)
            middle = time.perf_counter()
            self._finish_backward(batch, self._weights.keys())
            ratios.append((time.perf_counter() - middle) / (middle - begun) - 1)
        return statistics.median(ratios[1:])  # the first pair warms up

    def _finish_backward(self, batch: Batch, names: Set[str]) -> None:
        """Compute gradients as `_backward` does, and wait until a GPU, which works asynchronously, is done."""
        import torch

        self._backward(batch, names, 0)
        torch.zeros((), device=self._device).item()

    def _backward(
        self, batch: Batch, names: Set[str], step: int
    ) -> "tuple[torch.Tensor, Mapping[str, torch.Tensor]]":
        """Compute the gradients of the named terms. Return their weighted sum and each term."""
        import torch

        self.optimizer.zero_grad()
        inputs = self._inputs(batch)
        piece = self._piece or max(map(len, inputs))
        is_one_pass = piece >= max(map(len, inputs))
        with torch.set_grad_enabled(is_one_pass):
            embedded = [] if self._match else [self._embed(side, piece) for side in inputs]
        if not is_one_pass:
            embedded = [embeddings.requires_grad_() for embeddings in embedded]
        share = step / self._steps
        loss_parts = self._loss_parts(batch, names, inputs, embedded, share)
        total = torch.zeros((), device=self._device)
        for name, value in loss_parts.items():
            total = total + self._weights[name] * value
        if not math.isfinite(total.item()):
            raise InvalidInput(
                f"The training loss is {total.item()} at step {step}. Try a lower --rate, "
                "or --precision fp32."
            )
        self.scaler.scale(total).backward()
        if not is_one_pass:
            for side, embeddings in zip(inputs, embedded, strict=True):
                if embeddings.grad is None:
                    continue
                for rows, gradient in zip(
                    side.split(piece), embeddings.grad.split(piece), strict=True
                ):
                    recomputed = self._embed(rows, piece)
                    if recomputed.requires_grad:  # False if the tower is frozen
                        recomputed.backward(gradient)
        return total, loss_parts

    def judge(self, batch: Batch, names: Set[str]) -> dict[str, float]:
        """Compute the loss terms on a held-out batch, without the curriculum, so all flips count."""
        import torch

        with torch.no_grad():
            inputs = self._inputs(batch)
            embedded = []
            if not self._match:
                embedded = [self._embed(side, self._piece or len(side)) for side in inputs]
            loss_parts = self._loss_parts(batch, names, inputs, embedded, 1.0)
            return {name: value.item() for name, value in loss_parts.items()}

    def _inputs(self, batch: Batch) -> list["torch.Tensor"]:
        import torch

        # With channels last, convolutions on a CPU take two thirds of the time.
        pixels = torch.from_numpy(batch.pixels).to(self._device, memory_format=torch.channels_last)
        return [pixels, torch.from_numpy(batch.tokens).to(self._device)]

    def _embed(self, side: "torch.Tensor", piece: int) -> "torch.Tensor":
        import torch

        encode = self.model.encode_image if side.ndim > 2 else self.model.encode_text
        embedded = []
        for rows in side.split(piece):
            with self._autocast():
                embeddings = encode(rows)
            embedded.append(torch.nn.functional.normalize(embeddings.float(), dim=-1))
        return torch.cat(embedded)

    def _autocast(self) -> "torch.autocast":
        import torch

        return torch.autocast(self._device.type, self._dtype, enabled=self._dtype is not None)

    def _loss_parts(
        self,
        batch: Batch,
        names: Set[str],
        inputs: Sequence["torch.Tensor"],
        embedded: Sequence["torch.Tensor"],
        done: float,
    ) -> "Mapping[str, torch.Tensor]":
        if self._match:
            with self._autocast():
                logits = self._match(*(side[: batch.n] for side in inputs)).float()
            by_softmax = self._settings.scores == "softmax"
            scores = logits.softmax(dim=1) if by_softmax else logits.sigmoid()
            return objective.matching_parts(names, logits, scores, self._settings)
        scale, bias = self.model.logit_scale.exp(), getattr(self.model, "logit_bias", None)
        images, texts = embedded
        return objective.loss_parts(batch, names, images, texts, scale, bias, self._settings, done)
