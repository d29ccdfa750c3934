"""Documentation: the guides, and the formula of every number."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import documentation

frame.enter()
documentation.draw_page()
