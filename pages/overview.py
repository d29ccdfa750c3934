"""The former address of Trade-off."""

from vlprobe.dashboard import frame, navigation

frame.enter()
navigation.lead_on("overview")
