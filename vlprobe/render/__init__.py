"""Render tables as HTML, figures and files. Nothing in this package imports Streamlit."""
