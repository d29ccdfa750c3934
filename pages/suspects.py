"""The Suspect labels page: people judge the labels of cases that most strong models get wrong."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import suspects

frame.enter()
suspects.draw_page()
