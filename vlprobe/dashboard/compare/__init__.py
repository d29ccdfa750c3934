"""Compare: which of two to four models is fooled less often, at what, and on
which pictures they part.
"""
