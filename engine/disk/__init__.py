"""The disk: the interface that every byte passes, its storages, and the environment of a handle.

Leaves out the bytes themselves (`cerata.engine.format`). Read `storage` first.
"""
