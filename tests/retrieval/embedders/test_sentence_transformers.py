"""Models of sentence-transformers, with a module in its place: it is never installed here."""

import importlib.util
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import cerata
from cerata import EmbedderFailed, SentenceTransformersEmbedder, Unsupported

from ...embedders import words_hashed

NAME = "sentence_transformers"


class Transformer:
    """In the place of a ``SentenceTransformer``: it keeps what it was given."""

    made: list[tuple[str, dict[str, Any]]]
    asked: list[tuple[list[str], dict[str, Any]]]
    dimension = 4

    def __init__(self, name: str, **options: Any) -> None:
        self.made.append((name, options))

    def encode(self, sentences: list[str], **options: Any) -> object:
        self.asked.append((sentences, options))
        return np.array([words_hashed(text, self.dimension) for text in sentences], np.float64)


@pytest.fixture
def transformer(monkeypatch: pytest.MonkeyPatch) -> type[Transformer]:
    module = ModuleType(NAME)
    module.__spec__ = importlib.util.spec_from_loader(NAME, None)

    class Fresh(Transformer):
        made = []  # noqa: RUF012 - of this test alone
        asked = []  # noqa: RUF012

    vars(module)["SentenceTransformer"] = Fresh
    monkeypatch.setitem(sys.modules, NAME, module)
    return Fresh


def test_a_model_is_loaded_at_the_first_text_and_once(transformer: type[Transformer]) -> None:
    """From this machine, at the revision that names its space."""
    embedder = SentenceTransformersEmbedder(
        "org/model", revision="abc", dimension=4, batch=16, device="cpu"
    )
    assert repr(embedder) == "<SentenceTransformersEmbedder org/model@abc/4/cosine>"
    with cerata.open(":memory:", embedder=embedder) as store:
        assert transformer.made == []
        store.put_frames(["wax", "tablet"])
        store.put_frame("stylus")
    options = {"revision": "abc", "local_files_only": True, "device": "cpu"}
    assert transformer.made == [("org/model", options)]
    assert [texts for texts, _ in transformer.asked] == [["wax", "tablet"], ["stylus"]]
    given = {"batch_size": 16, "convert_to_numpy": True, "show_progress_bar": False}
    assert transformer.asked[0][1] == given


def test_it_is_fetched_only_when_that_is_said(transformer: type[Transformer]) -> None:
    SentenceTransformersEmbedder("m", revision="1", dimension=4, download=True).embed(["wax"])
    assert transformer.made[0][1]["local_files_only"] is False


def test_prefixes_are_added_and_the_model_keeps_its_revision(
    transformer: type[Transformer],
) -> None:
    embedder = SentenceTransformersEmbedder(
        "m", revision="1", dimension=4, text_prefix="passage: ", question_prefix="query: "
    )
    embedder.embed(["wax"])
    vector = embedder.embed_question("wax")
    assert vector.tolist() == words_hashed("query: wax", 4)
    assert [texts for texts, _ in transformer.asked] == [["passage: wax"], ["query: wax"]]
    assert transformer.made[0][1]["revision"] == "1"
    assert embedder.identity.revision == "1-prefix-b87d0bdc"


def test_a_model_of_another_dimension_is_refused(transformer: type[Transformer]) -> None:
    transformer.dimension = 5
    with pytest.raises(EmbedderFailed, match=r"shape \(1, 5\), not \(1, 4\)"):
        SentenceTransformersEmbedder("m", revision="1", dimension=4).embed(["wax"])


def test_without_the_package_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> None:
        assert name == NAME

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    with pytest.raises(Unsupported, match="pip install sentence-transformers"):
        SentenceTransformersEmbedder("m", revision="1", dimension=4)
