"""Pictures: facts on both clocks, and the graph around an entity, as SVG or PNG.

Owns the content of a picture (`regions`, `ring_layout`), its layout (`bitemporal`, `graph`), and
the only module that uses matplotlib (`canvas`), the extra ``plot``. The same state gives the same
bytes of SVG. Leaves out files: a picture is bytes. Start at `bitemporal`.
"""
