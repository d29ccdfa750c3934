"""The dashboard: `streamlit run app.py`."""

from vlprobe import ui

ui.main()
