"""The Present page: the results for one kind of question as slides, and the quiz."""

from vlprobe.dashboard import frame, present

frame.enter()
present.draw_page()
