"""One training step: embed a batch, compute the parts of the loss, and update the weights."""

import math
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

from vlprobe.errors import InvalidInput
from vlprobe.models.modules import OpenClipModel, TorchModel
from vlprobe.training import objective
from vlprobe.training.batches import Batch
from vlprobe.training.objective import Settings

if TYPE_CHECKING:
    import torch

# CLIP keeps its logit scale below; a model that starts above may stay where it is
HIGHEST_SCALE = 100
PICTURE_WORDS = ("visual", "vision", "image")  # in the names of a picture tower's parameters
_BETAS = (0.9, 0.98)


def tower_of(parameter: str) -> str:
    """Return the tower that a parameter belongs to: image or text, or "" for the logit scale and bias.

    >>> tower_of("visual.conv1.weight"), tower_of("model.text_proj.bias"), tower_of("logit_scale")
    ('image', 'text', '')
    """
    if "logit_" in parameter:
        return ""
    return "image" if any(word in parameter for word in PICTURE_WORDS) else "text"


def optimizer(model: TorchModel, rate: float, decay: float) -> "torch.optim.AdamW":
    """Return AdamW for the parameters that are not frozen; biases, gains and the logit scale do not decay."""
    import torch

    learned = [value for value in model.parameters() if value.requires_grad]
    groups = [
        {"params": [value for value in learned if value.ndim >= 2], "weight_decay": decay},
        {"params": [value for value in learned if value.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=_BETAS)


def schedule(step: int, of: int, warm_up: int) -> float:
    """Return the share of the learning rate at a step, 0 and up: linear warm-up, then half a cosine to zero."""
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, of - warm_up)))


def keep_scale(scale: "torch.Tensor", highest: float) -> None:
    """Clamp a logit scale, learned as its logarithm, between 1 and the highest, as in CLIP's paper."""
    import torch

    with torch.no_grad():
        scale.clamp_(0, math.log(highest))


class Learner:
    """A model in training.

    Args:
        model: A model of OpenCLIP, or a `hub_models.Trainable`, on its device. It learns in place; a
            matching head learns from the log-odds of each picture with each text of a batch.
        weights: Weight of each part of the loss.
        settings: Settings of the parts.
        rate: The highest learning rate.
        decay: Weight decay.
        warm_up, steps: Length of the warm-up and of the training, in steps.
        freeze: image or text: the frozen tower; "": none.
        precision: fp32, or fp16 or bf16 for autocast; losses are computed in float32.
        piece: Pictures or texts that go through a tower at once; 0: all.

    Raises:
        InvalidInput: the sigmoid loss for a model without a logit bias; for a matching head, a loss
            that compares embeddings, a frozen tower, or pieces.
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
                f"A matching head compares whole pictures and texts. Expected a loss of "
                f"{', '.join(objective.MATCHING)}, without --freeze and --piece."
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
        """Update the weights by one step, 0 and up.

        With pieces, both towers run twice: first without gradients, for the embeddings of the whole
        batch and the gradient of each; then piece by piece, to propagate it. The result is the same
        as without pieces.

        Returns:
            The loss, each part of it before its weight, and the rate.

        Raises:
            InvalidInput: the loss is not finite.
        """
        import torch

        rate = self._rate * schedule(step, self._steps, self._warm_up)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        inputs = self._inputs(batch)
        piece = self._piece or max(map(len, inputs))
        whole = piece >= max(map(len, inputs))
        with torch.set_grad_enabled(whole):
            embedded = [] if self._match else [self._embed(side, piece) for side in inputs]
        if not whole:
            embedded = [embeddings.requires_grad_() for embeddings in embedded]
        share = step / self._steps
        loss_parts = self._loss_parts(batch, self._weights.keys(), inputs, embedded, share)
        total = torch.zeros((), device=self._device)
        for name, value in loss_parts.items():
            total = total + self._weights[name] * value
        if not math.isfinite(total.item()):
            raise InvalidInput(
                f"The training loss is {total.item()} at step {step}. Try a lower --rate or fp32."
            )
        self.scaler.scale(total).backward()
        if not whole:
            for side, embeddings in zip(inputs, embedded, strict=True):
                if embeddings.grad is None:
                    continue
                for rows, gradient in zip(
                    side.split(piece), embeddings.grad.split(piece), strict=True
                ):
                    recomputed = self._embed(rows, piece)
                    if recomputed.requires_grad:  # not where the tower is frozen
                        recomputed.backward(gradient)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        keep_scale(self.model.logit_scale, self._highest)
        return {
            "loss": total.item(),
            **{name: value.item() for name, value in loss_parts.items()},
            "rate": rate,
        }

    def judge(self, batch: Batch, names: Set[str]) -> dict[str, float]:
        """Compute the parts of the loss on a held-out batch; all flips count."""
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

        # Channels last: convolutions on a CPU take two thirds of the time.
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
