"""Tables of frames, and the videos that frames are taken of."""
