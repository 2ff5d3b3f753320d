"""Links: commands, reads, and why a fact is believed.

Read first: `commands` and `reads`.
"""
