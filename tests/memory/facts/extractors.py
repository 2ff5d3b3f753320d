"""Extractors for tests: what they say is told to them."""

from collections.abc import Callable, Iterable
from typing import Any

from cerata import Candidate

TEXT = "Anna lives in Paris. Bob works at Acme."


class Model:
    """A model in the place of one: says what it is told to say, and counts how often."""

    def __init__(
        self, say: Callable[[str], Iterable[Any]], name: str = "model", version: str = "7b"
    ) -> None:
        self.name = name
        self.version = version
        self.asked: list[str] = []
        self._say = say

    def extract(self, text: str) -> Iterable[Candidate]:
        self.asked.append(text)
        return self._say(text)


def first_word(text: str) -> list[Candidate]:
    """Say that the first word is the first word."""
    word = text.split(maxsplit=1)[0]
    return [Candidate(word, "comes first in", text, 0, len(word.encode()), confidence=0.5)]


def raising(text: str) -> list[Candidate]:
    raise RuntimeError("the model has gone away")
