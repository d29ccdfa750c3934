"""Redirect from the former address of the Trade-off page."""

from vlprobe.dashboard import frame, navigation

frame.enter()
navigation.lead_on("overview")
