"""Picture searches among mixed pictures: searches lost to a mixture, and single searches."""

from vlprobe.views.mixed import case, outcomes, searches, shares

__all__ = ["case", "outcomes", "searches", "shares"]
