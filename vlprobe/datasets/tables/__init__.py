"""Readers for tables: load any layout into columns, recognize the layout, and convert rows to items."""
