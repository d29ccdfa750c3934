"""Present: the results of one kind of question as slides."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.present import page

frame.enter()
page.draw_page()
