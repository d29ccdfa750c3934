"""Tables and cases to HTML. Names, captions and notes are data: always escaped."""
