"""Benchmarks: one program a question, each with a tiny size for CI and a real one by command.

Each prints machine, versions, durability mode, data size, a hash of its result, and the ratio to a
peer that ran beside it. No speed is claimed anywhere without its command here.
"""
