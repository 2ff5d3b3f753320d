"""Cases of words, filters and values: questions that find nothing, values that are refused."""

import datetime as dt
import time
from enum import IntEnum

import numpy as np

import cerata
from cerata import Filter
from cerata.memory.store import Store

from .checks import ERROR, Checks


def store_of(*texts: str) -> Store:
    store = cerata.open(":memory:")
    for text in texts:
        store.put_frame(text)
    return store


def check_first(checks: Checks, store: Store, answers: dict[str, str], *, k: int = 10) -> None:
    """Check that the first hit of each question has a word."""
    for question, word in answers.items():
        hits = [hit.text for hit in store.search(question, k=k)]
        checks(question, bool(hits) and word in hits[0], hits[:3])


def case_04_filter_not_equal(checks: Checks) -> None:
    """`!=` admitted only values of the same type, and `!= None` nothing at all.

    Kind: a comparison that is false for both = and !=.
    """
    store = cerata.open(":memory:")
    for value in (1, 2, "1", True, False, None):
        store.put_frame(f"{value!r}", metadata={"n": value})

    def texts(test: object) -> list[str]:
        return sorted(frame.text for frame in store.frames(Filter(metadata={"n": test})))  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]

    checks("!= None", texts(("!=", None)) == sorted(["1", "2", "'1'", "True", "False"]))
    checks("!= 1 has the text, the bools and None", {"'1'", "True", "None"} <= {*texts(("!=", 1))})
    checks("!= True has the numbers", {"1", "2"} <= {*texts(("!=", True))})
    checks("= and != cover every frame", len(texts(1)) + len(texts(("!=", 1))) == 6)


def case_05_names_of_stop_words(checks: Checks) -> None:
    """A name made of stop words or single letters found nothing.

    Kind: stop words are removed from questions that have no other word.
    """
    texts = {
        "AT&T": "Our line is with AT&T.",
        "IT": "IT sits in room 4.",
        "A+": "The bond is rated A+.",
        "The Who": "The Who played in Leeds.",
        "to be or not to be": "To be or not to be is from Hamlet.",
        "on/off": "The on/off switch is red.",
        "WHO": "WHO sent a report.",
    }
    notes = [f"Note {n}: the garden was watered." for n in range(40)]
    check_first(checks, store_of(*texts.values(), *notes), texts)


def case_06_identifiers(checks: Checks) -> None:
    """The parts of camelCase and of acronyms found nothing.

    Kind: identifiers are cut at some boundaries only.
    """
    texts = (
        "class NoFizzStrategy prints plain numbers",
        "useEffectOnce runs the hook",
        "HTTPServer listens",
        "parseJSON2Html converts",
        "std::collections::HashMap in Rust",
        "pandas.DataFrame.groupby is slow",
        "an ArrayBuffer holds bytes",
    )
    answers = {
        "fizz strategy": "NoFizz",
        "effect": "useEffect",
        "http server": "HTTPServer",
        "parse json": "parseJSON",
        "hash map": "HashMap",
        "data frame": "DataFrame",
        "array buffer": "ArrayBuffer",
    }
    check_first(checks, store_of(*texts), answers)


def case_07_symbols_in_names(checks: Checks) -> None:
    """C++, C# and F# were the words "c" and "f", so a wrong text came first.

    Kind: signs that distinguish names are dropped.
    """
    texts = (
        "The service is in C#.",
        "The firmware is in plain C.",
        "The hot loop is in C++ since spring, wrote the team in a long note about speed.",
        "F# is used by one person.",
        "key F is broken",
    )
    answers = {"C++": "C++", "C#": "C#", "F#": "F#", "which loop is written in C++?": "C++"}
    check_first(checks, store_of(*texts), answers)


def case_08_numbers_and_codes(checks: Checks) -> None:
    """The same number, code or acronym with other separators was not found.

    Kind: separators inside one token have no joined form.
    """
    texts = (
        "The budget is 1,250,000 euros.",
        "Call +1 (555) 010-9999.",
        "Part AX-200/7B is out.",
        "ISBN 978-3-16-148410-0",
        "Commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke it.",
        "She lives in the U.S.A. with a Ph.D.",
        "O'Brien didn't come.",
        "re-entry and e-mail",
    )
    answers = {
        "1250000": "1,250,000",
        "5550109999": "555",
        "AX200": "AX-200",
        "9783161484100": "ISBN",
        "9fceb02d": "9fceb02d0",
        "USA": "U.S.A.",
        "PhD": "Ph.D.",
        "OBrien": "O'Brien",
        "didnt": "didn't",
        "reentry": "re-entry",
    }
    check_first(checks, store_of(*texts), answers)


def case_09_letters_not_folded(checks: Checks) -> None:
    """Case and accents do not count, but letters such as ł and ø and the Hindi nukta did.

    Kind: the fold has only letters that Unicode decomposes.
    """
    answers = {
        "Łódź jest daleko": "Lodz",
        "smørrebrød på onsdag": "smorrebrod",
        "Đường Láng ở Hà Nội": "duong",
        "cœur et œuvre": "coeur",
        "I\u011fd\u0131r uzak": "\u0131\u011fd\u0131r",
        "Ærø er en ø": "aero",
        "क़ानून नया है": "कानून",
        "ज़मीन सूखी": "जमीन",
    }
    for text, question in answers.items():
        checks(f"{question} finds {text}", len(store_of(text).search(question)) == 1)


class Name(str):
    """A subclass of a type of JSON, as packages of HTML have."""

    __slots__ = ()


class Level(IntEnum):
    """A number with a name."""

    HIGH = 3


def case_20_values_that_are_numbers_and_texts(checks: Checks) -> None:
    """Numbers of numpy and subclasses of str were refused in metadata, k and ids.

    Kind: a check by exact type.
    """
    store = cerata.open(":memory:")
    values = (np.int64(3), np.float64(0.5), np.float32(0.5), np.bool_(True), Name("x"), Level.HIGH)
    for value in values:
        try:
            frame = store.put_frame("x", metadata={"v": value})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
            seen: object = dict(store.frame(frame.id).metadata)
            checks(f"metadata {type(value).__name__}", seen == {"v": value}, seen)
        except ERROR as error:
            checks(f"metadata {type(value).__name__}", False, error)
    created = cerata.PutOptions(created=dt.date(2024, 1, 1))  # pyright: ignore[reportArgumentType]
    try:
        store.search("x", k=np.int64(3))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        store.frame(np.int64(1))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        store.put_frame("x", options=created)
    except ERROR as error:
        checks("k, an id and a date", False, error)


def case_22_emoji(checks: Checks) -> None:
    """An emoji was no word: a question with one found nothing.

    Kind: symbols of the text are not searchable.
    """
    notes = [f"note {n}" for n in range(20)]
    texts = ("Ship it 🚀 said Ann.", "Party 🎉 on Friday", "price in € only", *notes)
    check_first(checks, store_of(*texts), {"🚀": "🚀", "who said 🎉": "🎉", "€": "€"})


def case_26_thai_letters_outweigh_words(checks: Checks) -> None:
    """The letters of Thai words outweighed the only word that distinguishes the texts.

    Kind: in scripts without spaces a word counts as often as it has letters and pairs.
    """
    thai = (
        "git commit: บันทึกการเปลี่ยนแปลงลงที่เก็บ",
        "tar: จัดการแฟ้มรวม",
        "curl: ดาวน์โหลดจากเว็บ",
        "คัดลอกไฟล์และแสดงผลทางจอ",
        "แตกต่างระหว่างไฟล์สองไฟล์",
        "อ่านไฟล์ข้อความทีละหน้า",
        "คอมพิวเตอร์มีตัวเลขมาก",
        "มิตรภาพและความคิดของคน",
        "แสดงรายการไฟล์ในโฟลเดอร์",
        "แยกไฟล์ออกเป็นส่วน",
        "ตรวจไวรัสในไฟล์และอีเมล",
        "ค้นหาคำในไฟล์หลายไฟล์",
        "ย้ายไฟล์และแตกกิ่ง",
    )
    answers = {"คอมมิต git": "git", "แตกไฟล์ tar": "tar", "ดึงไฟล์ด้วย curl": "curl"}
    check_first(checks, store_of(*thai), answers, k=5)
    lao = (
        "git: ບັນທຶກການປ່ຽນແປງ",
        "ຄັດລອກໄຟລ໌ແລະສະແດງ",
        "ອ່ານຂໍ້ຄວາມເທື່ອລະໜ້າ",
        "ຄອມພິວເຕີມີຕົວເລກ",
        "ມິດຕະພາບແລະຄວາມຄິດ",
        "ຄົ້ນຫາຄຳໃນໄຟລ໌",
    )
    check_first(checks, store_of(*lao), {"ຄອມມິດ git": "git"}, k=3)
    japanese = (
        "git: 変更を記録する",
        "ファイルをコピーして表示",
        "コンピューターの数字",
        "友情と考え",
        "コミュニティのミーティング",
    )
    check_first(checks, store_of(*japanese), {"コミット git": "git"}, k=3)
    korean = (
        "git: 변경을 기록",
        "파일을 복사하고 표시",
        "컴퓨터와 숫자",
        "우정과 생각",
        "커피와 밋밋한 맛",
    )
    check_first(checks, store_of(*korean), {"커밋 git": "git"}, k=3)


def case_35_names_quadratic(checks: Checks) -> None:
    """`Session.recall` cost the square of a question of capitalised words.

    Kind: work that grows faster than its input.
    """
    taken: list[float] = []
    with cerata.Agent(cerata.open(":memory:"), "w").session("s") as session:
        session.exchange("Aa " * 6000, "ok")
        session.exchange("hello Anna", "ok")
        for count in (1000, 4000):
            start = time.process_time()
            session.recall("Aa " * (count // 3))
            taken.append(time.process_time() - start)
    checks("4 times the question, 8 times the work", taken[1] <= 8 * taken[0] + 0.05, taken)


def case_51_quotation(checks: Checks) -> None:
    """A question with quotation marks found nothing if the quoted words did not occur together.

    Kind: a mark of punctuation in a plain question becomes a condition.
    """
    store = cerata.open(":memory:")
    store.put_frame("Nate plays Xeonoblade Chronicles, a role-playing game.", role="Nate")
    store.put_frame("The event log is the truth.")
    question = 'Which type of game is "Xenoblade Chronicles" that Nate plays?'
    checks("a quotation that does not occur", bool(store.search(question)))
    hits = [hit.text for hit in store.search('which truth has the "event log"?')]
    checks("the frame with the phrase is first", hits[:1] == ["The event log is the truth."], hits)
