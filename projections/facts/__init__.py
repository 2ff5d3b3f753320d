"""Facts, entities and the text of facts, as of any event.

Read first: `projection`, then `rows` and `reader`.
"""
