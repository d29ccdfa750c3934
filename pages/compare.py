"""Compare: which of two to four models is fooled less often, at what, and where do they disagree?"""

from vlprobe.dashboard import compare, frame

frame.enter()
compare.draw_page()
