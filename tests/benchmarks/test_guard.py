"""The guard: an embedder, or a lane, never lowers a profile by more than 0.3 points."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.retrieval import guard
from benchmarks.retrieval.command import main
from benchmarks.retrieval.guard import LOWERED_MOST, losses
from benchmarks.retrieval.judged_set import JudgedSet
from benchmarks.retrieval.measurement import Settings, measure
from benchmarks.retrieval.report import Report
from benchmarks.retrieval.synthetic import KIND_OF, SYNONYMS, synthetic_documents, synthetic_set
from cerata import EmbedderIdentity, NotFound
from cerata.engine.integrity import hash_bytes


class Concepts:
    """An embedder of concepts: synonyms are one, a thing is near its kind, grammar is nothing."""

    identity = EmbedderIdentity("concepts", "1", 256)
    max_tokens = None

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        vectors = np.zeros((len(texts), 256), np.float32)
        for place, text in enumerate(texts):
            for word in _words(text):
                vectors[place] += _vector(word)
        return vectors


class ConceptTokens(Concepts):
    """With a vector for each word, too."""

    token_identity = EmbedderIdentity("concepts", "1", 256, "maxsim", "i1")

    def embed_tokens(self, texts: Sequence[str]) -> list[npt.NDArray[np.float32]]:
        return [np.array([_vector(word) for word in _words(text)], np.float32) for text in texts]


def _words(text: str) -> list[str]:
    words = [word.strip(".,?!") for word in text.lower().split()]
    return [SYNONYMS.get(word, word) for word in words]


def _vector(word: str) -> npt.NDArray[np.float32]:
    """Return signs from the hash of a word, near 0 if it is short; a thing has those of its kind.

    Vectors of different words are nearly orthogonal.
    """
    signs = _signs(word) if len(word) > 3 else 0.01 * _signs(word)
    return signs + _signs(KIND_OF[word]) if word in KIND_OF else signs


def _signs(word: str) -> npt.NDArray[np.float32]:
    digest = b"".join(hash_bytes(f"{word} {part}".encode())[:16] for part in range(2))
    return np.unpackbits(np.frombuffer(digest, np.uint8)).astype(np.float32) * 2 - 1


EMBEDDERS: dict[str, Any] = {"none": None, "pooled": Concepts(), "tokens": ConceptTokens()}


SETS = {"conversations": synthetic_set(), "documents": synthetic_documents()}


TALK: dict[str, Any] = {
    "sample_id": "talk",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Kofi",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "The kayak is red."},
            {"speaker": "Kofi", "dia_id": "D1:2", "text": "Mine is blue."},
        ],
    },
    "qa": [{"question": "What is red?", "evidence": ["D1:1"], "category": 4}],
}


def _reports(profile: str, judged: JudgedSet = SETS["conversations"]) -> list[Report]:
    settings = Settings(profile=profile, contexts=())
    return [
        Report(judged, settings, name, measure(judged, settings, embedder))
        for name, embedder in EMBEDDERS.items()
    ]


@pytest.mark.parametrize(
    ("judged", "profile"),
    [
        (judged, profile)
        for judged in SETS
        for profile in ("auto", "chat", "notes", "documents", "balanced", "used", "continuity")
    ],
)
def test_no_embedder_lowers_a_shipped_profile(judged: str, profile: str) -> None:
    assert losses(_reports(profile, SETS[judged])) == []


class Opposed(Concepts):
    """An embedder that sets answers against questions."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        signs = [1.0 if text.endswith("?") else -1.0 for text in texts]
        return super().embed(texts) * np.array(signs, np.float32)[:, None]


def test_an_embedder_that_lowers_a_profile_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EMBEDDERS, "pooled", Opposed())
    # Vectors weigh most in this profile, turns included.
    found = losses(_reports("documents 2"))
    assert {(loss.embedder, loss.metric) for loss in found} == {
        ("pooled", "R@10"),
        ("pooled", "nDCG@10"),
    }
    assert all(loss.plain - loss.lowered > LOWERED_MOST for loss in found)


def _with_gain(report: Report, embedder: str, gain: float) -> Report:
    scores = {
        question: {**scores, "nDCG@10": gain}
        for question, scores in report.measurement.scores.items()
    }
    measurement = replace(report.measurement, scores=scores)
    return replace(report, embedder=embedder, measurement=measurement)


def test_a_loss_is_more_than_the_limit() -> None:
    """Runs are compared with the run of the same set and profile that has no embedder."""
    plain = _reports("words")[0]
    at_limit = _with_gain(plain, "pooled", plain.groups["all"]["nDCG@10"] - LOWERED_MOST + 1e-9)
    below = _with_gain(plain, "tokens", plain.groups["all"]["nDCG@10"] - 2 * LOWERED_MOST)
    assert [(loss.embedder, loss.metric) for loss in losses([plain, at_limit, below])] == [
        ("tokens", "nDCG@10")
    ]
    assert losses([at_limit, below]) == []


def test_a_folder_of_sets_is_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each set of the folder has a row, then the synthetic set."""
    (tmp_path / "locomo-small.json").write_text(json.dumps([TALK]), encoding="utf-8")
    arguments = ["all", str(tmp_path), "--embedder", "none", "--contexts", "100"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines() if " none " in line] == [
        *("locomo", "synthetic", "synthetic"),
    ]
    assert printed.splitlines()[-1].startswith("No embedder lowers R@10 or nDCG@10")
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lowered"] == []


def test_an_embedder_that_lowers_a_profile_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def lowered(reports: Sequence[Report]) -> list[guard.Loss]:
        return [guard.Loss(reports[0].judged.name, "chat 4", "minilm", "R@10", 0.5, 0.4)]

    monkeypatch.setattr(guard, "losses", lowered)
    (tmp_path / "locomo.json").write_text(json.dumps([TALK]), encoding="utf-8")
    assert main(["all", str(tmp_path), "--embedder", "none", "--contexts", "0"]) == 1
    assert "minilm lowers R@10 from 50.0 to 40.0" in capsys.readouterr().out


def test_a_folder_without_sets_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["all", str(tmp_path)]) == NotFound.exit_code
    assert "has no judged set" in capsys.readouterr().err
