"""Play: spot the lie, alone or with a class; or a picture and a caption of one's own."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.play import page

frame.enter()
page.draw()
