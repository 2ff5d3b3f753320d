"""Benchmarks: a program per question, with a tiny size for CI and a full size by default.

Each prints machine, versions, durability mode, data size, a hash of its result, and the ratio to a
peer in the same run. Every documented speed names its command here.
"""
