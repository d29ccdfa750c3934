"""Lab: whether models can be believed, what repairs them, and the tables of the papers."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import doors

frame.enter()
doors.draw()
