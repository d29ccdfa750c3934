"""The drawn demo world: scenes, captions of them, and pairs and triplets of scenes."""
