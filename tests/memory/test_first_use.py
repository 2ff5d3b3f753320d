"""What a first user tries: values that print, calls that are refused, and help that can be read."""

import inspect
import re
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import get_args

import pytest

import cerata
from cerata import InvalidInput, NotFound, Store, View
from cerata.engine.limits import STRING_SIZE_MAX
from cerata.engine.log import SyncPolicy
from cerata.memory.handles import public_names

DOCS = Path(__file__).parents[2] / "docs"


class TestValues:
    """What a debugger, a prompt and an `if` make of them."""

    def test_an_empty_store_is_true(self) -> None:
        """``store or other`` took the other store while this one had no frame."""
        with cerata.open(":memory:") as store:
            assert len(store) == 0
            assert bool(store) is True
            assert bool(store.history.view()) is True
            assert bool(store.at(0)) is True

    def test_a_store_and_a_view_print_what_they_are(self, tmp_path: Path) -> None:
        """A store printed its address, a view a page of internals."""
        path = str(tmp_path / "brain.cera")
        with cerata.open(path) as store:
            assert repr(store) == f"<cerata.Store {path!r}>"
            store.put_frame("one")
            assert repr(store.at(1)) == "<cerata.View at event 1>"
        assert repr(store) == f"<cerata.Store {path!r}>"
        with cerata.open(path, scope={"user": "anna"}) as store:
            scope = "{'tenant': 'default', 'user': 'anna'}"
            assert repr(store) == f"<cerata.Store {path!r}, scope {scope}>"
            assert repr(store.history.view()) == f"<cerata.View at event 1, scope {scope}>"

    def test_a_hit_prints_its_text(self, tmp_path: Path) -> None:
        """A list of ids and scores shows nobody what was found."""
        with cerata.open(tmp_path / "brain.cera") as store:
            store.put_frame("The index is\nHNSW.")
            store.put_frame("The index " + "is long " * 100)
            hits = {hit.id: hit for hit in store.search("index")}
            unread = store.search("index")[0]
            assert "text='The index is HNSW.'" in repr(hits[1])
            assert repr(hits[1]).startswith("Hit(id=1, score=")
            assert len(repr(hits[2])) < 200
        assert "text='…'" in repr(unread)


class TestRefusals:
    """Each says what is wrong and what to do, and nothing is written."""

    def test_an_empty_text_is_refused_everywhere(self) -> None:
        """Remember refused one, put_frame and supersede stored it."""
        with cerata.open(":memory:") as store:
            first = store.put_frame("one")
            calls: tuple[Callable[[], object], ...] = (
                lambda: store.put_frame(""),
                lambda: store.put_frames(["two", ""]),
                lambda: store.supersede(first, ""),
                lambda: store.remember(""),
            )
            for call in calls:
                with pytest.raises(InvalidInput, match=r"text is empty|no text"):
                    call()
            assert store.head.seq == 1
            assert store.put_frame(b"").id == 2  # an empty file is content

    def test_an_empty_tag_is_refused(self) -> None:
        """No filter and no question can name one."""
        with cerata.open(":memory:") as store:
            for call in (store.put_frame, store.remember):
                with pytest.raises(InvalidInput, match="tags has an empty string"):
                    call("text", tags=["a", ""])
                with pytest.raises(InvalidInput, match="labels has an empty string"):
                    call("text", options=cerata.PutOptions(labels=[""]))
            assert store.head.seq == 0

    def test_documents_keep_parts_without_text(self) -> None:
        """A heading alone, and blank turns of a chat, are parts of documents."""
        with cerata.open(":memory:") as store:
            document = store.remember("# Empty\n\n# Full\n\n" + "Some words here.\n\n" * 300)
            assert store.frame(document).text.startswith("# Empty")
            assert store.search("words")

    def test_a_text_over_the_limit_is_refused(self) -> None:
        """A file of this size was refused, the same text as a str took ten seconds."""
        with cerata.open(":memory:") as store:
            for text in ("a " * (STRING_SIZE_MAX // 2 + 1), "µ" * (STRING_SIZE_MAX // 2 + 1)):
                with pytest.raises(InvalidInput, match="over the limit of 16,777,216 bytes"):
                    store.remember(text)
            assert store.head.seq == 0

    def test_messages_are_refused_with_a_way(self) -> None:
        """The remedy spoke of bytes."""
        with cerata.open(":memory:") as store, pytest.raises(InvalidInput) as error:
            store.remember([{"role": "user"}])  # type: ignore[arg-type]  # a user's mistake
        assert "messages of a chat to remember_messages(), and each text" in str(error.value)

    def test_a_backup_into_no_folder_names_the_folder(self, tmp_path: Path) -> None:
        """As open does; it said that there is no such file."""
        with cerata.open(":memory:") as store, pytest.raises(NotFound, match="no such folder"):
            store.backup(tmp_path / "none" / "copy.cera")

    def test_an_error_of_python_names_open(self) -> None:
        """It named open_store, which no user has called."""
        with pytest.raises(TypeError, match=r"open\(\) takes 1 positional argument"):
            cerata.open("x", "r")  # type: ignore[call-arg]  # a user's mistake


def test_a_receipt_of_supersede_names_the_current_frame() -> None:
    """With a stored frame its id was that of the supersede event, so frame(receipt) failed."""
    with cerata.open(":memory:") as store:
        old, new = store.put_frame("old"), store.put_frame("new")
        receipt = store.supersede(old, new)
        assert (receipt.id, receipt.ids, receipt.replaced) == (new.id, (), (old.id,))
        assert store.frame(receipt).text == "new"
        with store.transaction():
            third = store.put_frame("third")
            assert store.frame(store.supersede(new, third)).text == "third"


class TestHelp:
    """help() and the pages are how a user learns a call."""

    @pytest.mark.parametrize("call", [cerata.open, *vars(Store).values()])
    def test_signatures_keep_the_names_of_types(self, call: object) -> None:
        """put_frame had 20 lines of unions, such as cerata.memory.values.frames.Receipt | …."""
        if inspect.isfunction(call):
            assert "cerata.memory" not in str(inspect.signature(call))

    def test_every_inherited_signature_does(self) -> None:
        """Most calls of a store are those of its bases."""
        wide = [
            name
            for kind in (Store, View)
            for name in public_names(kind)
            if inspect.isfunction(call := attrgetter(name)(kind))
            and "cerata." in str(inspect.signature(call))
        ]
        assert wide == []

    def test_open_names_every_policy_of_syncing(self) -> None:
        """It once named a policy that does not exist."""
        text = re.search(r"sync: (.*(?:\n {8,}.*)*)", inspect.getdoc(cerata.OpenOptions) or "")
        assert text is not None
        names = get_args(get_args(SyncPolicy)[0])
        assert set(re.findall(r'"(\w+)"', text[1])) == set(names)

    def test_every_public_name_of_a_store_is_on_its_page(self) -> None:
        """Helpers of the store itself were public, and in every completion."""
        text = (DOCS / "api.md").read_text(encoding="utf-8")
        words = set(re.findall(r"\w+(?:\.\w+)?", re.sub(r"\b(?:Store|View)\.", "", text)))
        for kind in (Store, View):
            assert {*public_names(kind)} - words == set(), kind
