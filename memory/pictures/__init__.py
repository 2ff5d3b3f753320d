"""Pictures: facts on both clocks, and the graph around an entity, as SVG or PNG.

Owns what is drawn and how: what a picture shows (`regions`, `rings`), where it goes (`facts`,
`graph`), and the one module that knows matplotlib (`canvas`), which is the extra ``plot``. The same
state gives the same bytes of SVG. Leaves out files: a picture is bytes. Start at `facts`.
"""
