"""Cases of chats and files: turns that vanish, files that are left out, text that is no text."""

import base64
import random
import subprocess
import sys
from typing import Any

import cerata
from cerata import Filter

from .checks import Checks, cerata_command, remembered

NOON = "2024-05-01T10:00:00Z"


def texts_of(frames: list[cerata.Frame]) -> str:
    return " ".join(frame.text for frame in frames)


def turn(sender: str, **fields: Any) -> dict[str, Any]:
    return {"sender": sender, "created_at": NOON, **fields}


def chat(*turns: Any) -> dict[str, Any]:
    return {"uuid": "1", "name": "a", "chat_messages": list(turns)}


def node(
    name: str, parent: str | None, children: list[str], role: str, text: str, created: int | None
) -> dict[str, Any]:
    """Return a node of a ChatGPT conversation."""
    content = {"content_type": "text", "parts": [text]}
    message = {"id": name, "author": {"role": role}, "create_time": created, "content": content}
    return {"id": name, "parent": parent, "children": children, "message": message}


def mill(asked: int | None) -> dict[str, Any]:
    """Return a ChatGPT conversation whose question has a time, or none."""
    nodes = {
        "a": node("a", None, ["b"], "user", "How old is the mill?", asked),
        "b": node("b", "a", [], "assistant", "It is from 1830.", 1700000005),
    }
    return {"title": "Mill", "create_time": 1700000000, "current_node": "b", "mapping": nodes}


def case_01_chat_conversation_lost(checks: Checks) -> None:
    """In a list of conversations, one whose shape has an odd message vanishes.

    Kind: an importer drops a whole conversation silently.
    """
    odd_turns = {
        "a turn without text": {"sender": "assistant", "created_at": NOON},
        "a turn without sender": {"text": "note", "created_at": NOON},
        "null in the list": None,
    }
    for name, odd in odd_turns.items():
        lost = chat(turn("human", text="The boat is yellow."), odd)
        content = [chat(turn("human", text="The tent is green.")), {**lost, "uuid": "2"}]
        _, _, frames = remembered(checks, "export.json", content)
        checks(f"{name}: the other turns stay", "yellow" in texts_of(frames), texts_of(frames))


def case_02_chat_empty_content_hides_text(checks: Checks) -> None:
    """A turn with an empty `content` and its words in `text` is dropped without notice.

    Kind: the first name that is present wins, even if it is empty.
    """
    question = turn("human", text="Hm?", content=[{"type": "text", "text": "How old is it?"}])
    nothing: tuple[object, ...] = ([], "")
    for empty in nothing:
        answer = turn("assistant", text="It is from 1830.", content=empty)
        _, _, frames = remembered(checks, "claude.json", [chat(question, answer)])
        checks(f"content {empty!r}", "1830" in texts_of(frames), texts_of(frames))
    attached = turn(
        "human",
        text="see the file",
        content=[{"type": "text", "text": "see the file"}],
        attachments=[{"file_name": "n.txt", "extracted_content": "The code is blue heron."}],
    )
    _, _, frames = remembered(checks, "claude.json", [chat(attached)])
    checks("the extracted text of an attachment", "heron" in texts_of(frames), texts_of(frames))


def case_03_one_shell_spoils_the_export(checks: Checks) -> None:
    """One conversation without nodes makes the whole ChatGPT export raw text.

    Kind: one odd member decides for all.
    """
    shells = {
        "no mapping": {"title": "x", "create_time": 1},
        "mapping null": {"title": "x", "mapping": None},
        "null": None,
    }
    for name, shell in shells.items():
        _, _, frames = remembered(checks, "conversations.json", [mill(1700000000), shell])
        is_read = any(frame.role == "assistant" for frame in frames)
        checks(f"{name}: turns are turns", is_read, texts_of(frames)[:60])


def case_13_one_bad_line_costs_the_log(checks: Checks) -> None:
    """One line, time or half emoji that does not fit costs the whole transcript.

    Kind: no unit below the file can fail alone.
    """
    boat = '{"role":"user","content":"The boat is yellow."'
    good = f'{boat},"timestamp":"{NOON}"}}\n'
    half = '{"role":"assistant","content":"cut \\ud83d"}'
    cases = {
        "last line cut off": ("log.jsonl", good + '{"role":"us'),
        "half of a surrogate pair": ("log.jsonl", good + half + "\n"),
        "half of a surrogate pair, .json": ("chat.json", f"[{boat}}},{half}]"),
        "an empty time": ("chat.json", f'[{boat},"timestamp":""}}]'),
        "a time in digits as text": ("chat.json", f'[{boat},"ts":"1714557600.000100"}}]'),
        "a time in microseconds": ("chat.json", f'[{boat},"timestamp":1714557600123456}}]'),
        "one time of many is n/a": (
            "chat.json",
            f'[{good},{{"role":"user","content":"b","timestamp":"n/a"}}]',
        ),
        "a NaN beside the turn": ("log.jsonl", f'{boat},"score":NaN}}\n'),
    }
    for name, (file, content) in cases.items():
        _, report, frames = remembered(checks, file, content)
        is_read = any(frame.role == "user" and "yellow" in frame.text for frame in frames)
        checks(name, is_read, report.files[0].outcome)


def case_14_time_of_turns(checks: Checks) -> None:
    """A turn without a time gets the time of the import, years after its neighbours.

    Kind: an unknown time becomes now.
    """
    _, _, frames = remembered(checks, "conversations.json", [mill(None)])
    years = {frame.created.year for frame in frames if frame.role}
    checks("ChatGPT turn with create_time null", years == {2023}, years)
    for name in ("createdAt", "sentAt", "created_time", "updated_at", "date_unixtime"):
        time = 1714557600 if name == "date_unixtime" else NOON
        content = [{"role": "user", "content": "Hello mill.", name: time}]
        _, _, frames = remembered(checks, "chat.json", content)
        years = {frame.created.year for frame in frames if frame.role}
        checks(f"time named {name}", years == {2024}, years)


def case_16_base64_in_the_index(checks: Checks) -> None:
    """Pictures in notebooks and `data:` links become frames of letters without meaning.

    Kind: embedded binary data is indexed as words.
    """
    picture = base64.b64encode(random.Random(7).randbytes(60_000)).decode()
    output = {"output_type": "display_data", "metadata": {}, "data": {"image/png": picture}}
    text: dict[str, Any] = {
        "cell_type": "markdown",
        "metadata": {},
        "source": ["# Tides\n", "High at noon."],
    }
    code: dict[str, Any] = {
        "cell_type": "code",
        "metadata": {},
        "execution_count": 1,
        "source": ["plot()"],
    }
    notebook: dict[str, Any] = {
        "cells": [text, {**code, "outputs": [output]}],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    page = f"# Tides\n\n![chart](data:image/png;base64,{picture})\n\nHigh at noon.\n"
    for name, content in {"tides.ipynb": notebook, "tides.md": page}.items():
        _, _, frames = remembered(checks, name, content)
        checks(f"{name}: at most 4 frames", len(frames) <= 4, len(frames))
        checks(f"{name}: titled", any("Tides" in (frame.title or "") for frame in frames))


def case_17_front_matter(checks: Checks) -> None:
    """Title, tags and date in the front matter of a note are only text.

    Kind: metadata that the source states is no metadata here.
    """
    matter = "title: Mill visit\naliases: [Old mill]\ntags:\n  - trip/north\n  - idea\n"
    note = f"---\n{matter}date: 2023-05-01\n---\nThe mill is from 1830. #water\n"
    store, _, frames = remembered(checks, "2023-05-01.md", note)
    checks("title", frames[-1].title == "Mill visit", frames[-1].title)
    checks("tags", bool([*store.frames(Filter(tags=["idea"]))]), frames[-1].tags)
    is_dated = frames[-1].created.year == 2023 or bool(frames[-1].content_dates)
    checks("date", is_dated, frames[-1].created)


FILES = (
    *("README", "Makefile", "Dockerfile", "LICENSE", "compose.yaml", "pyproject.toml"),
    *("people.csv", "tides.ipynb", "app.log", "plan.org", "paper.tex", "talk.vtt", "film.srt"),
    *("page.adoc", "settings.ini", "feed.xml", "mail.eml"),
)


def case_18_files_left_out(checks: Checks) -> None:
    """Known files of a folder are left out, and named only by their count.

    Kind: the list of known suffixes.
    """
    for name in FILES:
        (checks.folder / name).write_text("{}" if name.endswith("ipynb") else f"word {name}")
    store = cerata.open(":memory:")
    store.files.remember([checks.folder])
    stored = {(frame.uri or "").rpartition("/")[2] for frame in store.frames()}
    checks("each file is stored", stored >= set(FILES), sorted(set(FILES) - stored))


def case_19_encodings(checks: Checks) -> None:
    """Text in UTF-16 with a byte order mark is refused, and read for HTML.

    Kind: a file that states its encoding.
    """
    host = "The host is orion."
    files = {
        "notes.txt": f"{host}\r\n".encode("utf-16"),
        "notes.md": b"\xfe\xff" + host.encode("utf-16-be"),
        "code.py": '# -*- coding: latin-1 -*-\nhost = "orion é"\n'.encode("latin-1"),
        "page.html": f"<p>{host}</p>".encode("utf-16"),
    }
    for name, content in files.items():
        store, report, _ = remembered(checks, name, content)
        checks(name, bool(store.search("orion")), report.files[0].outcome)


def case_23_an_export_again_under_another_name(checks: Checks) -> None:
    """The next export of the same chats has another name, and every turn is stored again.

    Kind: identity is the path of the file, though turns have ids, times and text.
    """

    def export(chats: int) -> list[dict[str, Any]]:
        return [
            {
                "uuid": f"c{n}",
                "name": f"Chat {n}",
                "chat_messages": [
                    turn("human", uuid=f"m{n}-{at}", text=f"Chat {n}, turn {at}: pear{n}x{at}.")
                    for at in range(4)
                ],
            }
            for n in range(chats)
        ]

    store, _, _ = remembered(checks, "export-05.json", export(1))
    _, _, _ = remembered(checks, "export-06.json", export(2))
    store.files.remember([checks.folder / "export-06.json"])
    hits = [hit.text for hit in store.search("pear0x1", k=20) if "pear0x1" in hit.text]
    checks("an old turn is found once", len(hits) == 1, hits)
    copy = checks.folder / "copy.json"
    copy.write_bytes((checks.folder / "export-06.json").read_bytes())
    outcome = store.files.remember([copy]).files[0].outcome
    checks("a copy of the same bytes adds nothing", outcome == "unchanged", outcome)


def case_24_blank_file_is_an_error(checks: Checks) -> None:
    """A file of 0 bytes is "empty" and exit code 0, a file of one line end "skipped" and 1.

    Kind: two sorts of empty.
    """
    folder = checks.folder / "sources"
    folder.mkdir()
    for name, content in {"none": b"", "end": b"\n", "mark": b"\xef\xbb\xbf"}.items():
        (folder / f"{name}.rs").write_bytes(content)
    (folder / "a.md").write_text("hello")
    run = cerata_command("remember", "-f", str(checks.folder / "m.cera"), str(folder))
    checks("the exit code", run.returncode == 0, (run.returncode, run.stderr[:120]))


def pdf_of(lines: list[str]) -> bytes:
    """Return a PDF of one page that has these lines."""
    drawn = " ".join(f"({line}) Tj 0 -14 Td" for line in lines)
    stream = f"BT /F1 11 Tf 72 720 Td {drawn} ET".encode()
    font = b"/Resources << /Font << /F1 5 0 R >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R %s >>" % font,
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    file, offsets = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, body in enumerate(objects, 1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(file)
    file += b"xref\n0 6\n0000000000 65535 f \n"
    file += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    file += b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start
    return bytes(file)


def case_25_pdf_hyphen(checks: Checks) -> None:
    """A word that a PDF breaks at a line end is not found.

    Kind: layout marks inside words.
    """
    pdf = pdf_of(["The staging data-", "base moved."])
    store, _, frames = remembered(checks, "a.pdf", pdf)
    checks("the page is read", "staging" in texts_of(frames), texts_of(frames))
    checks("database", bool(store.search("database")), texts_of(frames))


def case_34_rerun_imports(checks: Checks) -> None:
    """A repeated run imported the module that the file names, from the current folder.

    Kind: content of a memory chooses the code that is executed.
    """
    author, victim = checks.folder / "author", checks.folder / "victim"
    author.mkdir()
    victim.mkdir()
    code = "import cerata\nopen('IMPORTED', 'w').close()\ndef f(run): return 1\n"
    (author / "evilmod.py").write_text(code + "f = cerata.agent('bot')(f)\n")
    (victim / "evilmod.py").write_text(code)
    path = victim / "x.cera"
    program = (
        "import sys; sys.path.insert(0, '.')\nimport cerata, evilmod\n"
        f"with cerata.open({str(path)!r}) as s: evilmod.f(s, id='r1')"
    )
    subprocess.run([sys.executable, "-c", program], cwd=author, check=True)
    run = cerata_command("agents", "runs", "r1", "--again", "-f", str(path), cwd=victim)
    checks("the run is found", "r1" in run.stdout + run.stderr, run.stderr)
    checks("nothing was imported", not (victim / "IMPORTED").exists(), run.stderr[-100:])
