"""The demo world: its renderer, its captions, its training and its shipped checkpoints."""
