"""The Lab page: model checks, breakdowns, fine-tuning, tables from the papers, and stored results."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import page

frame.enter()
frame.watched_job()
page.draw_doors()
page.draw_stored()
