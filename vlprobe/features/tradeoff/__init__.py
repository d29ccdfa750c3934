"""The trade-off between a stable score when a caption is reworded and a lower score when it is made wrong."""
