"""The Explore page: the cases that fool a model, with pictures and filters."""

from vlprobe.dashboard import explore, frame

frame.enter()
explore.draw_page()
