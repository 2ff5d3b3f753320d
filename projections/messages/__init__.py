"""Messages of agents: their signs, patterns and topics, counted without a model.

Read first: `projection`, then `lexicon` and `reader`.
"""
