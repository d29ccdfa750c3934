"""Compare: which of two to four models is fooled less often, at what, and on
which pictures do they part?
"""

from vlprobe.dashboard import frame
from vlprobe.dashboard.compare import page

frame.enter()
page.draw_page()
