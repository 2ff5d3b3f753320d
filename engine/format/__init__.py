"""The byte layout of the file, in one place: one module per structure.

Each module holds the structure's layout comment, constants, size check, encode and decode. Start
with `page` (where everything is found from), then `record`, `extent`, `footer`, `toc`. Leaves out
reading, writing and deciding. docs/format.md says the same for readers without this code.
"""
