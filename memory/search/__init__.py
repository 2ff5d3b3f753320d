"""Search and recall: the lanes, their fusion, and the context of an answer.

Read first: `search`.
"""
