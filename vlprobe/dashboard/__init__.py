"""Code that the dashboard's pages share. Apart from the pages of features, only this package imports Streamlit."""
