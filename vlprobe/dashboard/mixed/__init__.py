"""Mixed pictures, a view of Explore: one search at a time, with what each model
makes of it at every share.
"""

from vlprobe.dashboard.mixed.view import WALL, current, draw_steps, draw_view, is_shown
from vlprobe.views.mixed.searches import KIND

__all__ = ["KIND", "WALL", "current", "draw_steps", "draw_view", "is_shown"]
