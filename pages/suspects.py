"""Suspect labels: cases that every strong model rejects, judged by people."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import suspects

frame.enter()
suspects.draw_page()
