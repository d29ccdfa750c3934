"""Convert results to HTML, figures and files. Nothing in this package imports Streamlit."""
