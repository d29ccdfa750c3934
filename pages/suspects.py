"""Suspect labels: people judge cases that every strong model rejects."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import suspects

frame.enter()
suspects.draw_page()
