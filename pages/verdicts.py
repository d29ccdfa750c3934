"""Verdicts: do edits of captions mean what they should? People judge a blind sheet, and their agreement is counted."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import verdicts

frame.enter()
verdicts.draw_page()
