"""The request for a training run. It is cheap to import, because the command line and jobs use it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Literal

from vlprobe.storage.files import parse_path


@dataclass(frozen=True)
class TrainRequest:
    """A request to fine-tune a model, made of names and numbers only. Nothing is loaded yet."""

    kind: ClassVar[Literal["training"]] = "training"  # the tag in the union with a run's Request

    model: str
    datasets: tuple[str, ...]
    output: str  # the .safetensors file
    loss: str = "clip"
    steps: int = 240
    batch_size: int = 128
    piece: int = 0  # how many pictures or texts go through a tower at once, to save memory; 0: all
    rate: float = 1e-4  # the highest learning rate: after the warm-up, before the cosine to zero
    warm_up: int = 20  # steps
    decay: float = 0.1  # weight decay; biases, gains and the logit scale do not decay
    freeze: str = ""  # the tower to freeze: image or text
    close: int = 8  # the k of EqSim and of hardneg
    eqsim: str = "hybrid"  # one of losses.EQSIM_VARIANTS, which pairs v1 and v2 use
    margin: float = 0.0  # EqSim's alpha
    scores: str = "cosine"  # what EqSim compares: cosine or softmax
    curriculum: bool = False  # train on the weakest flips first
    seed: int = 0
    validate_every: int = 40  # steps
    device: str = "auto"
    precision: str = "fp32"
    workers: int = 2
    threads: int = 0  # torch threads; 0 leaves the number to torch

    @property
    def path(self) -> Path:
        """The file that the weights are written to. The training run itself checks that writing is allowed."""
        return parse_path(self.output, confined=False)

    def recipe(self) -> dict[str, object]:
        """Return all fields, but omit the later option `eqsim` if it has its default, so older runs keep their key."""
        return {
            name: value
            for name, value in asdict(self).items()
            if (name, value) != ("eqsim", TrainRequest.eqsim)
        }

    @property
    def tuned(self) -> str:
        """The name of the fine-tuned model."""
        return f"{self.model.partition('@')[0]}@{self.output}"
