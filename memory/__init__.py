"""Memory: the API that agents use. A Store to write to, and Views to read from.

Owns remembering, recalling and superseding content, and reading the state at earlier points. Leaves
out how bytes are stored (`cerata.engine`), how state is folded (`cerata.projections`) and how hits
are ranked (`cerata.retrieval`). Start at `Store`.
"""
