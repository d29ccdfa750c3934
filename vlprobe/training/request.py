"""Request of a training; cheap to import, for the command line and for jobs."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Literal

from vlprobe.storage.files import parse_path


@dataclass(frozen=True)
class TrainRequest:
    """Training request: names and numbers, with nothing loaded yet."""

    kind: ClassVar[Literal["training"]] = "training"  # the tag in the union with a run's Request

    model: str
    datasets: tuple[str, ...]
    output: str  # the .safetensors file
    loss: str = "clip"
    steps: int = 240
    batch_size: int = 128
    piece: int = 0  # pictures or texts that go through a tower at once, to save memory; 0: all
    rate: float = 1e-4  # the highest learning rate: after the warm-up, before the cosine to zero
    warm_up: int = 20  # steps
    decay: float = 0.1  # of weights; biases, gains and the logit scale do not decay
    freeze: str = ""  # image or text: the tower that stays as it is
    close: int = 8  # EqSim's k, and that of hardneg
    eqsim: str = "hybrid"  # of losses.EQSIM_VARIANTS: on which pairs v1 and v2 count
    margin: float = 0.0  # EqSim's alpha
    scores: str = "cosine"  # what EqSim compares: cosine or softmax
    curriculum: bool = False  # flips: the weakest first
    seed: int = 0
    validate_every: int = 40  # steps
    device: str = "auto"
    precision: str = "fp32"
    workers: int = 2
    threads: int = 0  # of torch; 0 leaves them to torch

    @property
    def path(self) -> Path:
        """The file of the weights; the training itself checks that it may be written."""
        return parse_path(self.output, confined=False)

    def recipe(self) -> dict[str, object]:
        """Return all fields except a later option with its default, so that earlier trainings keep their name."""
        return {
            name: value
            for name, value in asdict(self).items()
            if (name, value) != ("eqsim", TrainRequest.eqsim)
        }

    @property
    def tuned(self) -> str:
        """The name of the fine-tuned model."""
        return f"{self.model.partition('@')[0]}@{self.output}"
