"""Full text: analysis, postings, BM25 and queries, as of any event.

Read first: `projection`, then `postings` and `bm25`.
"""
