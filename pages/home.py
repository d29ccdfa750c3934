"""Home: what this is on a first visit; else the picture that says most of the models."""

from vlprobe.dashboard import frame, navigation
from vlprobe.dashboard.tradeoff import page

frame.enter()
navigation.lead_from_overview()
frame.first_start()
page.draw_page()
