"""Code for the dashboard's pages. Only this package and the pages in `vlprobe.features` import Streamlit."""
