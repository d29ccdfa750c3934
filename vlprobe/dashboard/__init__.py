"""The shared code of the pages; the only part of the package that imports Streamlit."""
