"""Experiments: recorded recalls and projections of two versions, compared.

Purpose: the differences that other settings, another chunking or another projection would make to
the recorded recalls. Read first: `recall_comparison`.
"""
