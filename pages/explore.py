"""Explore: the cases that fool a model, with pictures and filters."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.explore import page

frame.enter()
page.draw_page()
