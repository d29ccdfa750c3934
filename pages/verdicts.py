"""The former address of a page that judged edits; Lab replaces it, and the command `vlprobe sheet`."""

from vlprobe.dashboard import frame, navigation

frame.enter()
navigation.lead_on("verdicts")
