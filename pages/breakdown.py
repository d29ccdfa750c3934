"""The Breakdown page: which kinds of edit, rules or pictures are easy, and which are hard?"""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import breakdown

frame.enter()
breakdown.draw_page()
