"""The Play page: spot the lie, alone or with a class, or try your own picture and caption."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.play import page

frame.enter()
page.draw()
