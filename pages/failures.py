"""Redirect from the former address of the Explore page."""

from vlprobe.dashboard import frame, navigation

frame.enter()
navigation.lead_on("failures")
