"""Printed numbers: what do the five papers print, and what did one's own models get?"""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import papers

frame.enter()
papers.draw_printed_numbers()
