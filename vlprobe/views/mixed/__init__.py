"""Searches for a picture among mixed ones: the searches lost to a mixture, and one search at a time."""

from vlprobe.views.mixed import case, outcomes, searches, shares

__all__ = ["case", "outcomes", "searches", "shares"]
