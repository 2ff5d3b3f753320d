"""Cerata: the memory of AI agents, in one file that is an append-only log.

This package is the front door and nothing else; the rooms behind it are `cerata.engine`,
`cerata.projections`, `cerata.replay`, `cerata.retrieval`, `cerata.memory`, `cerata.cli` and
`cerata.fault_injection`. Start reading at docs/index.md.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
