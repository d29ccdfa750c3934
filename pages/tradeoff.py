"""The Trade-off page: which model keeps its score for a reworded caption and notices a wrong one?"""

from vlprobe.dashboard import frame
from vlprobe.features.tradeoff import page

frame.enter()
page.draw_page()
