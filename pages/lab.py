"""Lab: model checks, breakdowns, fine-tuning, the tables of the
papers, and what is stored.
"""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import doors, stored

frame.enter()
frame.watched_job()
doors.draw()
stored.draw()
