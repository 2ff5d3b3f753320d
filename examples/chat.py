"""A chat with two users, whose memories are private, and a rulebook that both share.

pip install '.[minilm]' && python examples/chat.py
"""

import cerata

RULES = ("The kitchen is closed after ten in the evening.", "Guests are welcome on weekends.")
TOLD = {"anna": "I am allergic to peanuts.", "ben": "I am a vegetarian and never touch meat."}
SHARED = cerata.OpenOptions(shared=True)
ASKED = ("What must I not eat?", "May I cook at night?")


def answer(context: cerata.Context) -> str:
    """Repeat the best note; your model takes its place."""
    return context.items[0].text if context.items else "I do not know."


def main(path: str = "chat.cera", embedder: "str | cerata.Embedder" = "minilm") -> None:
    """Hold a few sessions; each opens the memory again."""
    with cerata.open(path, embedder=embedder, actor="house") as store:
        for rule in RULES:
            store.remember(rule, tags=["rule"])
    for user, text in TOLD.items():
        with cerata.open(path, scope={"user_id": user}, embedder=embedder, options=SHARED) as store:
            store.remember(text, role="user")
            store.graph.declare("sleeps in", functional=True)
            store.assert_fact(user, "sleeps in", "room 1", valid_from="2026-01-01")
            store.assert_fact(user, "sleeps in", f"room of {user}", valid_from="2026-03-01")
    for user in TOLD:
        with cerata.open(path, scope={"user_id": user}, embedder=embedder, options=SHARED) as store:
            for question in ASKED:
                print(f"{user}: {question} {answer(store.recall(question, max_tokens=200))}")
            print(*store.facts(user, valid_at="2026-02-01"), *store.facts(user))


if __name__ == "__main__":
    main()
