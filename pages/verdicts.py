"""Redirect from a former page for judging edits, which Lab and the command `vlprobe sheet` replaced."""

from vlprobe.dashboard import frame, navigation

frame.enter()
navigation.lead_on("verdicts")
