"""Entry point of the dashboard: `streamlit run app.py`."""

from vlprobe.dashboard import frame

frame.main()
