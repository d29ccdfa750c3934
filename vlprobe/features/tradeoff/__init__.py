"""Trade-off: which model keeps its score when a caption is only reworded, and notices when it is made wrong."""
