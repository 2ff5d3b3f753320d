"""One batch: the write session, the transaction, and the rules that each batch must pass.

Read first: `session`, then `validation`.
"""
