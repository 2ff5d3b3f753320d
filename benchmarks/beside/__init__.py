"""Cerata beside SQLite, LanceDB and Chroma, on the same made documents: ``python -m benchmarks``.

Each system is opened, filled and asked in turn. Read `comparison` first, then `rounds`.
"""
