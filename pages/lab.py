"""Lab: whether models can be believed, what repairs them, the tables of the
papers, and what is stored.
"""

from vlprobe.dashboard import frame, verify
from vlprobe.dashboard.lab import doors

frame.enter()
frame.watched_job()
doors.draw()
verify.stored()
