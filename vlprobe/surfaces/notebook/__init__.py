"""The Python interface of vlprobe: functions, the results that they return, and how notebooks display the results."""
