"""What pages of cases share: the sentence above them, their order, the drawer of one case, *Share*."""

from pathlib import Path

STYLE = Path(__file__).with_name("style.css")
