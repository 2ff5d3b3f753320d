"""Extract: from the bytes of a file to a `Document`, by what the file is.

Plain text, Markdown, HTML, PDF, chat transcripts, other JSON and source code. Leaves out where
bytes come from and how a document is stored (`cerata.memory.ingest`). Start at `registry.extract`.
"""
