"""Conversations in LoCoMo's form: sessions of turns with a date, and questions with evidence.

LoCoMo (Maharana et al., 2024), FriendsQA (Yang and Choi, 2019) and QMSum (Zhong et al., 2021) have
this form: a list of samples with ``sample_id``, ``qa`` and ``conversation``, which has
``session_1``, ``session_1_date_time`` and so on. A turn has ``dia_id`` ("D1:3"), ``speaker``,
``text``, and in LoCoMo the ``blip_caption`` of a shared photo. Each sample has a store, which gets
its questions; the gold turns of a question are its ``evidence``. Questions without evidence are
left out.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

from cerata import InvalidInput

from .judged_set import (
    Corpus,
    CorpusBuilder,
    Document,
    JudgedSet,
    Question,
    json_of,
    set_of,
    text_of,
)

LOCOMO_CATEGORIES: Final = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
"""The meaning of a category's number in LoCoMo alone."""

_Members = Mapping[str, object]
_TURN: Final = re.compile(r"D:?(\d+):(\d+)")
"""A turn in evidence, which may list several and be misspelt: ``D8:6; D9:17``, ``D:11:26``."""


def load(
    path: Path, name: str, *, categories: Mapping[int, str] | None = None, tolerant: bool = False
) -> JudgedSet:
    """Return the set of a file in LoCoMo's form.

    Args:
        path: the file
        name: the name of the set
        categories: the name of each category of questions; default none
        tolerant: leave out evidence without a turn, as LoCoMo's evaluation does; default False

    Raises:
        NotFound: the file cannot be read.
        InvalidInput: the file has another form, a date that cannot be read, or evidence without a
            turn.
    """
    samples = json_of(text_of(path), str(path))
    notices: list[str] = []
    corpora: list[Corpus] = []
    for place, sample in enumerate(_list(samples, "The file", str(path)), start=1):
        members = _mapping(sample, "A sample", f"{path}, sample {place}")
        corpora.append(_corpus(members, f"{path}, sample {place}", categories, tolerant, notices))
    return set_of(name, corpora, path, notices)


def load_locomo(path: Path) -> JudgedSet:
    """Return LoCoMo, with its categories, without evidence that names no turn.

    Raises:
        NotFound: the file cannot be read.
        InvalidInput: the file has another form.
    """
    return load(path, "locomo", categories=LOCOMO_CATEGORIES, tolerant=True)


def _corpus(
    sample: _Members,
    where: str,
    categories: Mapping[int, str] | None,
    tolerant: bool,  # noqa: FBT001
    notices: list[str],
) -> Corpus:
    name = _text(sample, "sample_id", where)
    builder = CorpusBuilder(name)
    conversation = _mapping(sample.get("conversation"), "conversation", where)
    for document, place in _turns(conversation, where):
        builder.add_document(document, place)
    questions = _list(sample.get("qa"), "qa", where)
    for number, question in enumerate(questions):
        place = f"{where}, question {number + 1}"
        members = _mapping(question, "A question", place)
        turns = _evidence(members, place)
        missing = [turn for turn in turns if not builder.has(turn)]
        if tolerant and missing:
            notices.append(f"{place}: evidence {', '.join(missing)} names no turn; left out")
            turns = [turn for turn in turns if turn not in missing]
        if turns:
            builder.add_question(
                Question(
                    f"{name}/{number}",
                    _text(members, "question", place),
                    dict.fromkeys(turns, 1.0),
                    category=_category(members.get("category"), categories),
                ),
                place,
            )
    return builder.built()


def _turns(conversation: _Members, where: str) -> Iterator[tuple[Document, str]]:
    """Yield the turns of all sessions in order, with their places in the file."""
    names = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
    for session in sorted(names, key=lambda name: int(name.partition("_")[2])):
        turns = conversation[session]
        if not turns:
            continue
        place = f"{where}, {session}"
        time = _time(_text(conversation, f"{session}_date_time", place), place)
        for number, turn in enumerate(_list(turns, session, place), start=1):
            turn_place = f"{place}, turn {number}"
            members = _mapping(turn, "A turn", turn_place)
            caption = members.get("blip_caption")
            photo = f" [shared a photo: {caption}]" if caption else ""
            document = Document(
                _text(members, "dia_id", turn_place),
                _text(members, "text", turn_place) + photo,
                role=_text(members, "speaker", turn_place),
                time=time,
                parent=session,
            )
            yield document, turn_place


def _time(text: str, where: str) -> datetime:
    """Return the time of a session, such as "1:56 pm on 8 May, 2023", in UTC."""
    try:
        time = datetime.strptime(" ".join(text.split()), "%I:%M %p on %d %B, %Y")  # noqa: DTZ007
    except ValueError as error:
        raise InvalidInput(
            f"The time {text!r:.60} cannot be read",
            where=where,
            remedy="Write a time such as 1:56 pm on 8 May, 2023.",
        ) from error
    return time.replace(tzinfo=UTC)


def _evidence(question: _Members, where: str) -> list[str]:
    """Return the ids of the turns that a question names, each once; a text without an id as is."""
    turns: dict[str, None] = {}
    for evidence in _list(question.get("evidence") or [], "evidence", where):
        pairs = _TURN.findall(str(evidence))
        names = [f"D{int(session)}:{int(number)}" for session, number in pairs]
        turns.update(dict.fromkeys(names or [str(evidence)]))
    return [*turns]


def _category(value: object, categories: Mapping[int, str] | None) -> str | None:
    if categories is None or not isinstance(value, int):
        return None
    return categories.get(value, str(value))


def _list(value: object, name: str, where: str) -> list[object]:
    if isinstance(value, list):
        return cast("list[object]", value)
    raise InvalidInput(
        f"{name} must be a list, not {value!r:.60}", where=where, remedy="Pass LoCoMo's form."
    )


def _mapping(value: object, name: str, where: str) -> _Members:
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    raise InvalidInput(
        f"{name} must be an object, not {value!r:.60}", where=where, remedy="Pass LoCoMo's form."
    )


def _text(members: _Members, name: str, where: str) -> str:
    value = members.get(name)
    if isinstance(value, str):
        return value
    raise InvalidInput(
        f"{name} must be a string, not {value!r:.60}", where=where, remedy="Pass LoCoMo's form."
    )
