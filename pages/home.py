"""Home: what models are fooled by, in one picture."""

from vlprobe.dashboard import frame, navigation
from vlprobe.dashboard.home import page

frame.enter()
navigation.lead_from_overview()
page.draw_page()
