"""Printed numbers: the five papers' numbers next to those of your models."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import papers

frame.enter()
papers.draw_printed_numbers()
