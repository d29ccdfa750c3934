"""Read tables of any layout into columns, recognize the layout, and convert rows to items."""
