"""The engine: one append-only log of immutable events in one file.

Owns the events and their bytes, the ring and the segments, header pages and TOC, recovery, locks,
and the hashes that bind the log. Leaves out projections and the meaning of events. Start with `log`
(the operations), then `format/` (the layout of the file), `log_file.recovery`, `open`.
"""
