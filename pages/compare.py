"""The Compare page: which models are fooled least, by what, and where do they disagree?"""

from vlprobe.dashboard import frame
from vlprobe.features.compare import page

frame.enter()
page.draw_page()
