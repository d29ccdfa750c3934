"""Trade-off: which model keeps its score when a caption is only reworded, and
alert when it is made wrong?
"""

from vlprobe.dashboard import frame
from vlprobe.features.tradeoff import page

frame.enter()
page.draw_page()
