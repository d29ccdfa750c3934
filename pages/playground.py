"""Redirect from the former address of the Play page."""

from vlprobe.dashboard import frame, navigation

frame.enter()
navigation.lead_on("playground")
