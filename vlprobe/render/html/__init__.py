"""Tables and cases as HTML. Names, captions and notes are data and always escaped."""
