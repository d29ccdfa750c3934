"""The shared parts of case pages: the sentence above them, their order, the drawer of one case, *Share*."""

from pathlib import Path

STYLE = Path(__file__).with_name("style.css")
