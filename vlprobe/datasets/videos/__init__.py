"""Tables of frames, and the videos from which frames are extracted."""
