"""Integrations: Cerata behind the interfaces that agents already use.

A sub-package for each framework. Using one without its framework raises `Unsupported`, which
names the extra to install; `import cerata` loads none of them. `importers` needs no framework.
Leaves out the memory itself.

Read first: `frames_of_scope`, then the sub-package of a framework.
"""
