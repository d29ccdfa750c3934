"""The drawn demo world: scenes, their captions, and pairs and triplets of scenes."""
