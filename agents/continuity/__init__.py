"""Conversations that outlive sessions and crashes: messages, threads, handoffs, growth.

Every reading is computed from the log as of a basis, and never stored. Read first: `exchanges`,
then `handoff`.
"""
