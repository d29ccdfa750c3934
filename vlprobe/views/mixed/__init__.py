"""Picture searches in galleries that contain mixed pictures: outcomes of all searches, and details of one."""

from vlprobe.views.mixed import case, searches, shares

__all__ = ["case", "searches", "shares"]
