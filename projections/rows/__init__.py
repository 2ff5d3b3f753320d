"""Row projections: small states that store whole rows and replay a short tail for the past.

Read first: `row_projection`.
"""
