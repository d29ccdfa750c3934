"""The Home page: one failure, and how often models are fooled."""

from vlprobe.dashboard import frame, home, navigation

frame.enter()
navigation.lead_from_overview()
home.draw_page()
