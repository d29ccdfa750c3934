"""The Printed numbers page: numbers from the five papers next to the numbers for your models."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import papers

frame.enter()
papers.draw_printed_numbers()
