"""The Suspect labels page: people judge the cases that every strong model gets wrong."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import suspects

frame.enter()
suspects.draw_page()
