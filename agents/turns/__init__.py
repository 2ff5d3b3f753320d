"""Messages of agents: their sessions, threads, signs and topics, and an opt-in predictor.

Limits: a row never changes, so readers leave out closed messages. Read first: `projection`, then
`reader`.
"""
