"""Events that are read: from sealed segments, from the ring's tail, and from memory.

Owns segments, their readers and writer, and the caches over them. Read `reader` first.
"""
