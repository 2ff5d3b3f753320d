"""`python -m benchmarks`: equal documents in every run, right answers, missing peers."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import fastjsonschema
import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.beside import rounds as bench_rounds
from benchmarks.beside.chart import chart
from benchmarks.beside.documents import BATCH, Documents, K
from benchmarks.beside.results import exponents, result_of
from benchmarks.beside.rounds import Cost, Round, one_round, work_of
from benchmarks.beside.systems import SYSTEMS, Cerata

ROOT: Final = Path(__file__).parents[2]

pytestmark = pytest.mark.unwatched("it measures")


def test_documents_are_equal_in_every_run() -> None:
    """Systems and rounds are compared, so all must meet the same texts and vectors."""
    first, second = ([*Documents(250).batches()] for _ in range(2))
    assert [batch.texts for batch in first] == [batch.texts for batch in second]
    assert all((a.vectors == b.vectors).all() for a, b in zip(first, second, strict=True))
    assert [(batch.first, len(batch.texts)) for batch in first] == [(0, 100), (100, 100), (200, 50)]


def test_right_answers_are_those_of_all_documents_at_once() -> None:
    """They are gathered batch by batch, so that a million documents need little memory."""
    work = work_of(300, 4)
    batches = list(work.documents.batches())
    vectors = np.vstack([batch.vectors for batch in batches])
    for question, nearest in zip(work.questions, work.answers.nearest, strict=True):
        assert nearest == np.argsort(-(vectors @ question.vector), kind="stable")[:K].tolist()
    texts = [text.split() for batch in batches for text in batch.texts]
    assert work.answers.documents_of
    for word, documents in work.answers.documents_of.items():
        assert documents == {number for number, words in enumerate(texts) if word in words}


def no_process(*arguments: object) -> Cost:
    """Take the place of the first answer in a new process."""
    return Cost(1, 1)


def no_step() -> None:
    """Take the place of the progress bar."""


def measured(system: type[Cerata], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Round:
    """Return a round of one system in place of Cerata."""
    entry = replace(SYSTEMS["cerata"], open=system)
    monkeypatch.setitem(SYSTEMS, "cerata", entry)
    monkeypatch.setattr(bench_rounds, "_first_answer", no_process)
    return one_round(work_of(200, 2), ["cerata"], 0, str(folder), no_step)["cerata"]


def test_right_answers_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check below, seen passing; the files are removed."""
    result = measured(Cerata, tmp_path, monkeypatch)
    assert (result.recall, result.exact_words) == (1, 1)
    assert list(tmp_path.iterdir()) == []
    assert len(result.costs["ingest"]) == 200 // BATCH
    assert len(result.costs["past"]) == 2


def test_wrong_answers_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that is fast because it forgets documents must not look good."""

    class Forgetful(Cerata):
        def text(self, question: str, k: int = K) -> list[int]:
            return super().text(question, k)[1:]

        def vector(self, vector: np.ndarray[tuple[int], np.dtype[np.float32]]) -> list[int]:
            return super().vector(vector)[1:]

    result = measured(Forgetful, tmp_path, monkeypatch)
    assert result.recall == 0.9
    assert result.exact_words < 0.5


def test_a_missing_peer_is_one_line_with_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every peer is optional, and no peer disappears in silence."""
    entry = replace(SYSTEMS["chroma"], packages=("cerata-no-such-package",))
    monkeypatch.setitem(SYSTEMS, "chroma", entry)
    words = ["--sizes", "100", "--rounds", "1", "--queries", "1", "--peers", "chroma"]
    monkeypatch.setattr(bench_rounds, "_first_answer", no_process)
    assert main(words) == 0
    assert capsys.readouterr().out.startswith(
        "Chroma is skipped; to compare, run pip install '.[peers]' in a checkout of Cerata\n"
    )
    assert main([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["skipped"] == {"chroma": "pip install '.[peers]' in a checkout of Cerata"}
    assert list(answer["systems"]) == ["cerata"]
    assert answer["exponents"] == {}


def test_the_tables_of_two_sizes_and_the_object_have_their_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs and readers compare runs; SQLite is installed with the extra for tests."""
    monkeypatch.setenv("COLUMNS", "80")
    words = ["--sizes", "100,200", "--rounds", "1", "--queries", "2", "--peers", "sqlite"]
    assert main([*words, "--svg", str(tmp_path / "growth.svg")]) == 0
    out = capsys.readouterr().out
    heads = [line for line in out.splitlines() if re.search("Cerata +SQLite$", line)]
    assert [head.split("  ")[0] for head in heads] == ["100 documents", "200 documents", "growth"]
    for label in ("durability", "documents/s", "hybrid search", "first answer, cold"):
        assert len(re.findall(rf"^{label} ", out, re.MULTILINE)) >= 2
    assert main([*words, "--json"]) == 0
    whole = json.loads((ROOT / "docs" / "answers.schema.json").read_text(encoding="utf-8"))
    check: Any = fastjsonschema.compile({**whole, "$ref": "#/definitions/bench"})
    check(json.loads(capsys.readouterr().out))


def test_a_wrong_size_is_an_error_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--sizes", "10"])
    assert "must be from 100 to 10,000,000, not 10" in capsys.readouterr().err
    assert main(["--svg", "growth.jpg"]) == 2


def test_medians_are_over_rounds_and_growth_is_of_processor_time() -> None:
    """A slow round moves no median; ingest counts all documents."""

    def rounds(cpu: float) -> list[Round]:
        return [
            Round({"ingest": [Cost(wall, cpu)] * 3, "text": [Cost(wall, cpu)] * 3}, Cost(wall, cpu))
            for wall in (1.0, 2.0, 90.0)
        ]

    small, large = result_of(rounds(0.5), 100, 1), result_of(rounds(5.0), 1_000, 1)
    assert small.figures["text"].p50_ms == small.figures["text"].p99_ms == 2_000
    assert small.ingest_rate == 50
    growth = exponents({100: {"cerata": small}, 1_000: {"cerata": large}})["cerata"]
    assert {name: round(power, 6) for name, power in growth.items()} == {"ingest": 1, "text": 1}


def test_equal_results_are_an_equal_picture() -> None:
    """A picture in a repository changes if a figure does."""
    lines = {"hybrid search": {"Cerata": [(1_000, 0.5), (10_000, 0.9)], "SQLite": [(1_000, 2.0)]}}
    picture = chart(lines, "Median times", "svg")
    assert picture.startswith(b"<?xml")
    assert picture == chart(lines, "Median times", "svg")
    assert picture != chart({"hybrid search": {"Cerata": [(1_000, 0.6)]}}, "Median times", "svg")


_COLD = """
import sys
from pathlib import Path
from typing import Any, Final

import fastjsonschema
import numpy as np

from benchmarks.beside.cold import import_all
from benchmarks.beside.documents import Documents
from benchmarks.beside.systems import SYSTEMS

documents = Documents(20)
question = documents.questions(1)[0]
import_all(SYSTEMS["cerata"], question)
loaded = set(sys.modules)
store = SYSTEMS["cerata"].open(Path(sys.argv[1]))
assert store.hybrid(question)
print(*{name for name in sys.modules if name.startswith("cerata.")} - loaded)
"""


def test_a_first_answer_imports_nothing(tmp_path: Path) -> None:
    """Modules are imported when they are used; their imports were most of the first answer."""
    store = Cerata(tmp_path)
    for batch in Documents(20).batches():
        store.add(batch)
    store.close()
    child = subprocess.run(
        [sys.executable, "-c", _COLD, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True
    )
    assert child.stdout.split() == []
