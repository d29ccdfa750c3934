"""Redirect from the former address of the quiz and the Playground."""

from vlprobe.dashboard import frame, navigation

frame.enter()
navigation.lead_on("play")
