"""A chat that remembers: recall before the model is asked, and keep both turns afterwards.

    python examples/agent.py --user anna "I am allergic to peanuts."
    python examples/agent.py --user anna "What must I not eat?"
    python examples/agent.py --user ben "What must I not eat?"

Each run is a new process; what Anna said is there for Anna, and for nobody else. The model here is
a stand-in that repeats the best entry it was given: put a call to yours in the place of `answer`.
"""

import argparse
import sys

import cerata

INSTRUCTIONS = "Answer from the notes. Where they say nothing, say that you do not know."


def answer(messages: list[dict[str, str]]) -> str:
    """Stand in for a model: repeat the first thing in the notes that is no question."""
    notes = [message["content"] for message in messages if message["role"] == "user"][:-1]
    lines = [line for note in notes for line in note.splitlines() if line and line[0] != "["]
    said = [line for line in lines if not line.endswith("?")]
    return f"You told me: {said[0]}" if said else "I do not know."


def turn(store: cerata.Store, thread: str, text: str) -> str:
    """Answer one message, and remember it and the answer together."""
    where = cerata.Filter(role="user")
    known = store.recall(text, max_tokens=800, where=where)
    messages = [
        {"role": "system", "content": INSTRUCTIONS},
        *(known.to_messages() if not known.fallback else []),
        {"role": "user", "content": text},
    ]
    reply = answer(messages)
    # Both or neither: a kill between the two cannot leave a question without its answer.
    with store.transaction():
        store.put_frame(text, kind="message", role="user", track=thread)
        store.put_frame(
            reply,
            kind="message",
            role="assistant",
            track=thread,
            metadata={"answers": text, "recalled_at": known.basis},
        )
    return reply


def main() -> int:
    """Run it from a command line."""
    parser = argparse.ArgumentParser(description="A chat that remembers.")
    parser.add_argument("text")
    parser.add_argument("--user", default="anna", help="whose memory (anna)")
    parser.add_argument("--thread", default="main", help="which conversation (main)")
    parser.add_argument("--memory", default="agent.cera", help="the file (agent.cera)")
    given = parser.parse_args()
    with cerata.open(given.memory, scope={"user_id": given.user}) as store:
        print(turn(store, given.thread, given.text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
