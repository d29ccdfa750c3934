"""Readers for tables of frames, and for the videos from which frames are extracted."""
