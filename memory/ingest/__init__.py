"""Ingest: files and folders become documents of chunks.

Read first: `document`.
"""
