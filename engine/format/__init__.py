"""The byte layout of the file: one module per structure.

Each module holds the structure's layout comment, constants, size check, encode and decode. Start
with `page` (which leads to every structure), then `record`, `extent`, `footer`, `toc`. Leaves out
reading, writing and decisions. docs/format.md describes the same layout without this code.
"""
