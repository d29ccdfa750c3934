"""Lab: model checks, breakdowns, fine-tuning, the papers' tables, and what is stored."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import page

frame.enter()
frame.watched_job()
page.draw_doors()
page.draw_stored()
