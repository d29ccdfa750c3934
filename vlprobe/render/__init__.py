"""Tables to HTML, figures and files; nothing here imports Streamlit."""
