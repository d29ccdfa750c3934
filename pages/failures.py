"""The former address of Explore."""

from vlprobe.dashboard import frame, navigation

frame.enter()
navigation.lead_on("failures")
