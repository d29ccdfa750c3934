"""Code that the dashboard's pages share. No other part of vlprobe imports Streamlit."""
