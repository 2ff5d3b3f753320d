"""Retrieval quality: judged sets, asked through the public API of a stored file.

Owns the loaders of the sets, the metrics, the ablation of a profile and the comparison of two runs.
Leaves out the sets themselves, whose path is an argument, and speed at scale (`vectors_bench`).
Read `command` first; ``python -m benchmarks.retrieval --help`` lists the sets and the options.
"""
