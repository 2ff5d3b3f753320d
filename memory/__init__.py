"""Memory: what agents use. A Store to write to, and Views to read from.

Remember, recall, supersede, and look at the memory as it was. Leaves out how bytes are kept
(`cerata.engine`), how state is folded (`cerata.projections`) and how hits are ranked
(`cerata.retrieval`). Start at `Store`.
"""
