"""Redirect from the former address of Try it."""

from vlprobe.dashboard import frame, navigation

frame.enter()
navigation.lead_on("playground")
