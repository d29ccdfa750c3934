"""Picture searches in galleries with mixed pictures: searches lost to a mixture, and single searches."""

from vlprobe.views.mixed import case, searches, shares

__all__ = ["case", "searches", "shares"]
