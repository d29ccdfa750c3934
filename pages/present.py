"""Present: the results of one kind of question as slides."""

from vlprobe.dashboard import frame, present

frame.enter()
present.draw_page()
