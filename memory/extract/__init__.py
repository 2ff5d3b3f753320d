"""Extract: from the bytes of a file to a `Document`, by the type of the file.

Owns plain text, Markdown, HTML, PDF, chat transcripts, other JSON and source code. Leaves out the
source of the bytes and the storage of documents (`cerata.memory.ingest`). Start at
`registry.extract`.
"""
