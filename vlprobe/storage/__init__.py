"""File access: safe reading and writing, the result store and its object-store mirror, notes and bookmarks."""
