"""Turns: the words of neighbouring turns, which count for a turn of a conversation.

Owns the shares of neighbours, the part of a conversation, and the best turns of a question. Leaves
out turns by themselves, which score as other frames (`cerata.projections.fulltext.scoring`).
"""
