"""The Python interface of vlprobe: functions, the results they return, and the display of results in a notebook."""
