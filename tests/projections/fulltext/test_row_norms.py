"""Length parts of few rows, or of all: a view's first question and its later ones."""

import cerata
from cerata.memory.snapshot.reader import snapshot_of


def test_the_first_question_scores_as_the_later_ones_do() -> None:
    """The first computes its rows alone, and many together make the arrays of all rows."""
    with cerata.open(":memory:") as store:
        store.put_frames(
            [f"note {n} " + "tea " * (n % 7) + f"word{n % 50} " * (1 + n % 3) for n in range(400)]
        )
        view = store.at(400)
        base = snapshot_of(view).layers.base.ranking._scoring

        def scores() -> list[tuple[int, float]]:
            return [(hit.id, hit.score) for hit in view.search("word7 word9", k=50)]

        first = scores()
        assert first
        assert "_ones" not in vars(base)
        for n in range(50):
            view.search(f"word{n} note")
        assert "_ones" in vars(base)
        assert scores() == first
