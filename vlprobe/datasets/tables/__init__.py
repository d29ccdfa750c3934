"""Tables of any layout: read into columns, recognised, and turned into items."""
