"""The Documentation page: the guides, and the formula for every metric."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import documentation

frame.enter()
documentation.draw_page()
