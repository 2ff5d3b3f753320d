"""Facts: commands, reads, search, extraction, import and export.

Read first: `commands` and `reads`.
"""
