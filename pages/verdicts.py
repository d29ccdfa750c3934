"""Redirect from a former page for judging edits; Lab and the command `vlprobe sheet` replace it."""

from vlprobe.dashboard import frame, navigation

frame.enter()
navigation.lead_on("verdicts")
