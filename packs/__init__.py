"""Packs: features that are neither agents nor bridges, a folder each.

Purpose: a feature lies whole in its folder, and the rooms below name none. `docs/packs.md` has the
parts of a pack. Read first: the `pack` of a folder.
"""
