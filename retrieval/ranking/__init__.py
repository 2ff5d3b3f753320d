"""Ranking: profiles of lanes and weights, fusion of lanes, reranking.

Read first: `profile`.
"""
