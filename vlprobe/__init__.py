"""vlprobe: a stress bench for vision-language models."""

__version__ = "0.1.0"
