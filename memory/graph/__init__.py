"""The graph of entities: neighbours, paths and what is reachable."""
