"""The catalogue of planted bugs, each with the detector that has to notice it.

Leaves out the planting (`mutate`). Each edit is compared with the source of the rooms: a text
that is no longer there fails.
"""

from cerata.fault_injection.mutation.canary import CANARY
from cerata.fault_injection.mutation.mutate import Edit, Plant

_LOG = "cerata.engine.log:Log."
_WRITER = "cerata.engine.log_file.writer:Writer."
_PUBLISH = "cerata.engine.log_file.file:Flip.publish"
_PAGE_WRITE = "file.write_at(flipped.number * PAGE_SIZE, flipped.encode())"


def _bug(name: str, detector: str, target: str, old: str, new: str) -> Plant:
    """Return a bug of one edit."""
    return Plant(name, detector, (Edit(target, old, new),))


PLANTS: tuple[Plant, ...] = (
    _bug(
        "acknowledge without a sync",
        "stories",
        _WRITER + "sync",
        "self._state.log_file.file.sync()",
        "pass",
    ),
    _bug(
        "acknowledge before the record is written",
        "stories",
        _WRITER + "write_record",
        "file.write_at(offset, record + EMPTY_SECTOR)",
        (
            "earlier = getattr(self, '_late', None)"
            "; self._late = offset, record + EMPTY_SECTOR"
            "; earlier and file.write_at(*earlier)"
        ),
    ),
    _bug(
        "sync every second commit",
        "stories",
        _WRITER + "sync",
        "self._state.log_file.file.sync()",
        (
            "self._skip = not getattr(self, '_skip', False)"
            "; self._skip or self._state.log_file.file.sync()"
        ),
    ),
    _bug(
        "write the header page before its data is synced",
        "stories",
        _PUBLISH,
        "file.sync()\n    flipped =",
        "flipped =",
    ),
    _bug(
        "write both header pages in one epoch",
        "stories",
        _PUBLISH,
        _PAGE_WRITE,
        (
            _PAGE_WRITE
            + "; other = replace(flipped, number=1 - flipped.number)"
            + "; file.write_at(other.number * PAGE_SIZE, other.encode())"
        ),
    ),
    _bug(
        "reuse the ring before the second sync",
        "stories",
        _PUBLISH,
        _PAGE_WRITE + "\n    file.sync()",
        _PAGE_WRITE,
    ),
    _bug(
        "believe a record's header unchecked",
        "stories",
        "cerata.engine.format.record:decode_record_header",
        "if expected != header_check:",
        "if not first_seq:",
    ),
    CANARY,
    _bug(
        "do not compare a record's link",
        "damage",
        "cerata.engine.log_file.ring:walk",
        "if prefix.link != cursor.link:",
        "if False:",
    ),
    Plant(
        "leave a structure's own offset out of its check",
        "damage",
        tuple(
            Edit(
                f"cerata.engine.format.checksums:{name}",
                "_PLACE.pack(tag, offset)",
                "_PLACE.pack(tag, 0)",
            )
            for name in ("begin_check", "check")
        ),
    ),
    Plant(
        "leave the file id out of the checks",
        "damage",
        (
            Edit("cerata.engine.format.checksums:file_key", "blake3(file_id,", "blake3(b'',"),
            # Most files differ in the id of the log, too.
            Edit(
                "cerata.engine.log_file.recovery:_newest_footer",
                " or toc.log_id != page.log_id",
                "",
            ),
        ),
    ),
    Plant(
        "no new incarnation after a cut",
        "damage",
        (
            Edit(
                _WRITER + "flip",
                "incarnation = 1 + max(",
                "incarnation = 0 * max(",
            ),
            Edit(_PUBLISH, "if incarnation is not None:", "if False:"),
        ),
    ),
    _bug(
        "do not look for records beyond a hole",
        "damage",
        "cerata.engine.log_file.recovery:_beyond",
        "beyond = look_beyond(log_file.file, log_file.key, page, cursor)",
        "beyond = list[Beyond]()",
    ),
    _bug(
        "do not believe the witnesses",
        "damage",
        "cerata.engine.log_file.recovery:_beyond",
        "max([*claims, *named, page.closed_seq])",
        "max(claims)",
    ),
    _bug(
        "witness what is not synced",
        "stories",
        _WRITER + "_witness",
        "log_file.write_witnesses(page, durable, numbers)",
        "log_file.write_witnesses(page, durable + 1, numbers)",
    ),
    _bug(
        "write on over an older copy",
        "promises",
        "cerata.engine.log_file.log_state:LogState.take_in",
        "if not update.follows:",
        "if False:",
    ),
    _bug(
        "write on in a file that was cut short",
        "promises",
        "cerata.engine.log_file.log_state:LogState.is_current",
        "if not file.read_at(end - 1, 1):",
        "if False:",
    ),
    _bug(
        "cut without keeping aside",
        "stories",
        _WRITER + "flip",
        "quarantine=(*toc.quarantine, ref)",
        "quarantine=(*toc.quarantine,)",
    ),
    _bug(
        "show records before they are synced",
        "schedules",
        _LOG + "_publish_synced",
        "self._file_sync()",
        "pass",
    ),
    _bug(
        "claim unsynced records as durable",
        "stories",
        _WRITER + "write_record",
        "RecordPrefix(state.durable,",
        "RecordPrefix(first_seq - 1,",
    ),
    _bug(
        "write without the writer lock",
        "schedules",
        "cerata.engine.log_file.handle_lock:HandleLock.wait_for_writer",
        "wait_for(",
        "False and wait_for(",
    ),
    _bug(
        "seal drops an event",
        "stories",
        _WRITER + "_add_segment",
        "SegmentDraft(tail, chain, tree)",
        "SegmentDraft(tail[:-1] or tail, chain, tree)",
    ),
    _bug(
        "no empty sector after a record",
        "stories",
        _WRITER + "write_record",
        "file.write_at(offset, record + EMPTY_SECTOR)",
        "file.write_at(offset, record)",
    ),
    _bug(
        "recorded time follows the clock back",
        "stories",
        _WRITER + "write_batch",
        "recorded = max(clock, state.recorded + 1)",
        "recorded = clock",
    ),
    _bug(
        "name a large payload before it is synced",
        "stories",
        _LOG + "_write_spill",
        "log_file.file.sync()",
        "pass",
    ),
    _bug(
        "store maps in the order they were made",
        "stories",
        "cerata.engine.codec:_encoded_body",
        "data = _encode(body)",
        "data = msgspec.msgpack.encode(body)",
    ),
    _bug(
        "give a new file its name before it is written",
        "stories",
        "cerata.engine.log_file.create:create",
        "write_empty(file, path, new_page(environment, ring_size))",
        (
            "storage.link(temporary, path); storage.unlink(path)"
            "; storage.link(temporary, path)"
            "; write_empty(file, path, new_page(environment, ring_size))"
            "; storage.unlink(path)"
        ),
    ),
    _bug(
        "do not sync the folder of a new file",
        "stories",
        "cerata.engine.log_file.create:create",
        "storage.sync_dir(path)",
        "pass",
    ),
    _bug(
        "do not sync the folder of a name that a dead creator gave",
        "schedules",
        "cerata.engine.log_file.create:sweep_temporaries",
        "storage.sync_dir(path)",
        "pass",
    ),
    _bug(
        "do not sync the folder of a copy",
        "stories",
        "cerata.engine.log_file.create:new_file",
        "storage.sync_dir(path)",
        "pass",
    ),
    _bug(
        "take a later record for a proof",
        "stories",
        "cerata.engine.log_file.recovery:_beyond",
        "*(record.durable_through for record in beyond)",
        "*(record.first_seq - 1 for record in beyond)",
    ),
    _bug(
        "cut off what a large batch takes",
        "stories",
        _WRITER + "settle",
        "named_end = max([recovered.page.data_end, *spills])",
        "named_end = recovered.page.data_end",
    ),
    _bug(
        "save a projection further than the log is sealed",
        "promises",
        _WRITER + "flip",
        "if tail:",
        "if tail and build is None:",
    ),
    _bug(
        "go by the older header page",
        "stories",
        "cerata.engine.log_file.file:choose_page",
        "newest = max(found, key=lambda page: page.flip)",
        "newest = min(found, key=lambda page: page.flip)",
    ),
    _bug(
        "believe a header page unchecked",
        "stories",
        "cerata.engine.format.page:decode_page",
        "if _page_check(number, body) != data[_CHECK_OFFSET:]:",
        "if False:",
    ),
    _bug(
        "believe a footer whose extents are not whole",
        "stories",
        "cerata.engine.log_file.recovery:_whole_toc",
        "pending = list(toc.references())",
        "pending = list(toc.references())[:0]",
    ),
    _bug(
        "put a compacted file in place without a word in the old file",
        "stories",
        "cerata.engine.copies.compact:_Compaction._swap",
        "log.set_moved(moved=True)",
        "pass",
    ),
    _bug(
        "compact without the events that others appended meanwhile",
        "schedules",
        "cerata.engine.copies.compact:_Compaction._swap",
        "self._copy(copy, retention, snapshot, whole=True)",
        "snapshot = msgspec.structs.replace(snapshot, head_seq=copy.head.seq)",
    ),
    _bug(
        "write on in the old file after a swap",
        "schedules",
        "cerata.engine.log_file.handle_lock:HandleLock.catch_up",
        "if self.follow_move(pages, locked=True):",
        "if False:",
    ),
    _bug(
        "join the old file after a swap",
        "schedules",
        "cerata.engine.open:_join",
        "if page.moved and",
        "if False and",
    ),
    _bug(
        "replace the file of a faster creator",
        "schedules",
        "cerata.engine.log_file.create:create",
        "named = storage.link(temporary, path)",
        "named = not storage.rename(temporary, path)",
    ),
    _bug(
        "read the ring once while a writer goes around it",
        "promises",
        _LOG + "_take_in",
        "if state.log_file.read_pages() == pages:",
        "if True:",
    ),
    _bug(
        "append without taking in what others wrote",
        "schedules",
        "cerata.engine.log_file.handle_lock:HandleLock.catch_up",
        "self._writer.catch_up(pages)",
        "pass",
    ),
    _bug(
        "cut off bytes though others are there",
        "schedules",
        "cerata.engine.open:_join",
        "log.settle(recovered, alone=alone)",
        "log.settle(recovered, alone=True)",
    ),
    _bug(
        "call a sync again that failed",
        "promises",
        _WRITER + "sync",
        "raise self._poison.take(error) from error",
        "self._state.log_file.file.sync()",
    ),
    _bug(
        "ignore a short write",
        "promises",
        "cerata.engine.disk.storage:OsFile.write_at",
        "if written == len(data):",
        "if True:",
    ),
    _bug(
        "begin again where a short write began",
        "promises",
        "cerata.engine.disk.storage:OsFile.write_at",
        "rest[written:], offset + written",
        "rest[written:], offset",
    ),
    _bug(
        "lock for the process, not for the open file",
        "promises",
        "cerata.engine.disk.storage:OsFile._ofd",
        "_F_OFD_SETLK, _OFD_REQUESTS",
        "fcntl.F_SETLK, _OFD_REQUESTS",
    ),
    _bug(
        "leave a child its parent's handle",
        "promises",
        _LOG + "abandon",
        "self._lock.abandon()",
        "pass",
    ),
    _bug(
        "go on from what an interrupt left",
        "promises",
        "cerata.engine.log_file.handle_lock:HandleLock.begin_change",
        "if self.is_changing:",
        "if False:",
    ),
    _bug(
        "believe a saved projection unchecked",
        "promises",
        "cerata.engine.log_file.file:LogFile.read_extent",
        "if own != self.file.read_at(header.body_offset + header.length, len(own)):",
        "if False:",
    ),
    _bug(
        "a projection that reads the clock",
        "promises",
        "cerata.projections.rows.built_in:Tags.apply",
        "(body.at, event.seq))",
        "(body.at, __import__('time').monotonic_ns()))",
    ),
    _bug(
        "a projection that forgets what it folded before",
        "promises",
        "cerata.projections.frames.projection:FramesProjection._fold",
        "else:",
        "elif events[0].seq == 1:",
    ),
)
"""The catalogue. Grows with the engine; docs/reliability.md asks for at least 25 bugs."""

FROM_LONG_RUNS: tuple[Plant, ...] = (
    _bug(
        "show the records of a moved log before they are synced",
        "cases",
        _LOG + "move",
        "self._take_in()\n            self._publish_synced()",
        "self._take_in()\n            self._publish()",
    ),
    _bug(
        "write one header page while the page of a dead compactor is not synced",
        "cases",
        "cerata.engine.log_file.relocation:clear_moved",
        "for copy in (page, replace(turned(page), moved=False)):",
        "for copy in (replace(turned(page), moved=False),):",
    ),
    _bug(
        "flip while the sync of the newest header page is in doubt",
        "cases",
        _WRITER + "flip",
        "self._repeat_page()",
        "pass",
    ),
    _bug(
        "move while the sync of the newest header page is in doubt",
        "cases",
        "cerata.engine.log_file.relocation:set_moved",
        "page.encode())\n    log_file.file.sync()\n",
        "b'')\n    log_file.file.sync()\n",
    ),
)
"""Bugs that only a long run noticed. A case of the corpus shows each (tests/fault_injection)."""

BY_NAME = {plant.name: plant for plant in (*PLANTS, *FROM_LONG_RUNS)}
