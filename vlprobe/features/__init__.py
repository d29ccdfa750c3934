"""Features, each in its own folder: data.py prepares data from stored results, and page.py draws the Streamlit page."""
