"""Home: one failure, and how often models are fooled."""

from vlprobe.dashboard import frame, navigation
from vlprobe.dashboard.home import page

frame.enter()
navigation.lead_from_overview()
page.draw_page()
