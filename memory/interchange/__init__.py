"""Interchange: every event of a log as JSON Lines, exact, to another file or program.

Owns the dialect ``cerata-events/1`` (docs/interchange.md): its lines (`event_lines`), reading them
from an untrusted file (`line_blocks`, `event_batches`), the export (`export`), the
import into the same log (`importing`) and into another (`remapping`). Leaves out lines of facts
(`facts.export`). The calls are in
`cerata.memory.event_interchange`.
"""
