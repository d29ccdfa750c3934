"""Trade-off: which model is steady when a caption is only reworded, and
alert when it is made wrong.
"""
