"""Values that callers pass and get, and the checks of arguments.

Read first: `frames`.
"""
