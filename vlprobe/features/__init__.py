"""One folder per feature: data.py turns results into page data for every surface, page.py draws the Streamlit page."""
