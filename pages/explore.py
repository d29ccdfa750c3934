"""Explore: what is a model fooled by, and what does that look like?"""

from vlprobe.dashboard import frame
from vlprobe.dashboard.explore import page

frame.enter()
page.draw_page()
