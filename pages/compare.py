"""The Compare page: which of two to four models is fooled less often, by what, and where do they disagree?"""

from vlprobe.dashboard import compare, frame

frame.enter()
compare.draw_page()
