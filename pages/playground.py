"""The former address of Play."""

from vlprobe.dashboard import frame, navigation

frame.enter()
navigation.lead_on("playground")
