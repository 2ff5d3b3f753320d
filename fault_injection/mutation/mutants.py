"""The catalogue of planted bugs, each with the detector that has to notice it.

Leaves out the planting (`mutate`). Each edit is compared with the source of the rooms: a text
that is no longer there fails.
"""

from .canary import CANARY
from .mutate import Edit, Plant

_LOG = "cerata.engine.log:Log."
_WRITER = "cerata.engine.writer:Writer."
_PUBLISH = "cerata.engine.file:Flip.publish"
_PAGE_WRITE = "file.write_at(flipped.number * PAGE_SIZE, flipped.encode())"

PLANTS: tuple[Plant, ...] = (
    Plant(
        "acknowledge without a sync",
        "stories",
        (Edit(_LOG + "_file_sync", "self._state.log_file.file.sync()", "pass"),),
    ),
    Plant(
        "acknowledge before the record is written",
        "stories",
        (
            Edit(
                _WRITER + "write_record",
                "file.write_at(offset, record + EMPTY_SECTOR)",
                "earlier = getattr(self, '_late', None)"
                "; self._late = offset, record + EMPTY_SECTOR"
                "; earlier and file.write_at(*earlier)",
            ),
        ),
    ),
    Plant(
        "sync every second commit",
        "stories",
        (
            Edit(
                _LOG + "_file_sync",
                "self._state.log_file.file.sync()",
                "self._skip = not getattr(self, '_skip', False)"
                "; self._skip or self._state.log_file.file.sync()",
            ),
        ),
    ),
    Plant(
        "write the header page before its data is synced",
        "stories",
        (Edit(_PUBLISH, "file.sync()\n    flipped =", "flipped ="),),
    ),
    Plant(
        "write both header pages in one epoch",
        "stories",
        (
            Edit(
                _PUBLISH,
                _PAGE_WRITE,
                _PAGE_WRITE
                + "; other = replace(flipped, number=1 - flipped.number)"
                + "; file.write_at(other.number * PAGE_SIZE, other.encode())",
            ),
        ),
    ),
    Plant(
        "reuse the ring before the second sync",
        "stories",
        (Edit(_PUBLISH, _PAGE_WRITE + "\n    file.sync()", _PAGE_WRITE),),
    ),
    Plant(
        "believe a record's header unchecked",
        "stories",
        (
            Edit(
                "cerata.engine.format.record:decode_record_header",
                "if expected != header_check:",
                "if not first_seq:",
            ),
        ),
    ),
    CANARY,
    Plant(
        "do not compare a record's link",
        "damage",
        (Edit("cerata.engine.ring:walk", "if prefix.link != cursor.link:", "if False:"),),
    ),
    Plant(
        "leave a structure's own offset out of its check",
        "damage",
        (
            Edit(
                "cerata.engine.format.checksums:begin_check",
                "_PLACE.pack(tag, offset)",
                "_PLACE.pack(tag, 0)",
            ),
        ),
    ),
    Plant(
        "leave the file id out of the checks",
        "damage",
        (Edit("cerata.engine.format.checksums:file_key", "blake3(file_id,", "blake3(b'',"),),
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
    Plant(
        "do not look for records beyond a hole",
        "damage",
        (
            Edit(
                "cerata.engine.recovery:_beyond",
                "beyond = look_beyond(log_file.file, log_file.key, page, cursor)",
                "beyond = list[Beyond]()",
            ),
        ),
    ),
    Plant(
        "do not believe the witnesses",
        "damage",
        (Edit("cerata.engine.recovery:_beyond", "max([*claims, *named])", "max(claims)"),),
    ),
    Plant(
        "witness what is not synced",
        "stories",
        (
            Edit(
                _WRITER + "_witness",
                "log_file.write_witnesses(page, durable, numbers)",
                "log_file.write_witnesses(page, durable + 1, numbers)",
            ),
        ),
    ),
    Plant(
        "write on over an older copy",
        "promises",
        (Edit("cerata.engine.log_state:LogState.take_in", "if not update.follows:", "if False:"),),
    ),
    Plant(
        "write on in a file that was cut short",
        "promises",
        (Edit("cerata.engine.handle_lock:HandleLock.catch_up", "state.check_size()", "pass"),),
    ),
    Plant(
        "cut without keeping aside",
        "stories",
        (
            Edit(
                _WRITER + "flip",
                "quarantine=(*toc.quarantine, ref)",
                "quarantine=(*toc.quarantine,)",
            ),
        ),
    ),
    Plant(
        "show records before they are synced",
        "schedules",
        (
            Edit(
                _LOG + "refresh",
                "self._file_sync()",
                "pass",
            ),
        ),
    ),
    Plant(
        "claim unsynced records as durable",
        "stories",
        (
            Edit(
                _WRITER + "write_record",
                "RecordPrefix(state.durable,",
                "RecordPrefix(first_seq - 1,",
            ),
        ),
    ),
    Plant(
        "write without the writer lock",
        "schedules",
        (
            Edit(
                "cerata.engine.handle_lock:HandleLock.wait_for_writer",
                "wait_for(",
                "False and wait_for(",
            ),
        ),
    ),
    Plant(
        "seal drops an event",
        "stories",
        (
            Edit(
                _WRITER + "_add_segment",
                "SegmentDraft(tail, chain, tree)",
                "SegmentDraft(tail[:-1] or tail, chain, tree)",
            ),
        ),
    ),
    Plant(
        "no empty sector after a record",
        "stories",
        (
            Edit(
                _WRITER + "write_record",
                "file.write_at(offset, record + EMPTY_SECTOR)",
                "file.write_at(offset, record)",
            ),
        ),
    ),
    Plant(
        "recorded time follows the clock back",
        "stories",
        (
            Edit(
                _WRITER + "write_batch",
                "recorded = max(clock, state.recorded + 1)",
                "recorded = clock",
            ),
        ),
    ),
    Plant(
        "name a large payload before it is synced",
        "stories",
        (Edit(_LOG + "_write_spill", "log_file.file.sync()", "pass"),),
    ),
    Plant(
        "store maps in the order they were made",
        "stories",
        (
            Edit(
                "cerata.engine.codec:_encode_payload",
                "data = _encode(body)",
                "data = msgspec.msgpack.encode(body)",
            ),
        ),
    ),
    Plant(
        "give a new file its name before it is written",
        "stories",
        (
            Edit(
                "cerata.engine.create:create",
                "write_empty(file, path, new_page(environment, ring_size))",
                "storage.link(temporary, path); storage.unlink(path)"
                "; storage.link(temporary, path)"
                "; write_empty(file, path, new_page(environment, ring_size))"
                "; storage.unlink(path)",
            ),
        ),
    ),
    Plant(
        "do not sync the folder of a new file",
        "stories",
        (Edit("cerata.engine.create:create", "storage.sync_dir(path)", "pass"),),
    ),
    Plant(
        "do not sync the folder of a name that a dead creator gave",
        "schedules",
        (Edit("cerata.engine.create:sweep_temporaries", "storage.sync_dir(path)", "pass"),),
    ),
    Plant(
        "do not sync the folder of a copy",
        "stories",
        (Edit("cerata.engine.backup:back_up", "storage.sync_dir(path)", "pass"),),
    ),
    Plant(
        "take a later record for a proof",
        "stories",
        (
            Edit(
                "cerata.engine.recovery:_beyond",
                "*(record.durable_through for record in beyond)",
                "*(record.first_seq - 1 for record in beyond)",
            ),
        ),
    ),
    Plant(
        "cut off what a large batch takes",
        "stories",
        (
            Edit(
                _WRITER + "settle",
                "named_end = max([recovered.page.data_end, *spills])",
                "named_end = recovered.page.data_end",
            ),
        ),
    ),
    Plant(
        "save a projection further than the log is sealed",
        "promises",
        (Edit(_WRITER + "flip", "if tail:", "if tail and build is None:"),),
    ),
    Plant(
        "go by the older header page",
        "stories",
        (
            Edit(
                "cerata.engine.file:choose_page",
                "newest = max(found, key=lambda page: page.flip)",
                "newest = min(found, key=lambda page: page.flip)",
            ),
        ),
    ),
    Plant(
        "believe a header page unchecked",
        "stories",
        (
            Edit(
                "cerata.engine.format.page:decode_page",
                "if _page_check(number, body) != data[_CHECK_OFFSET:]:",
                "if False:",
            ),
        ),
    ),
    Plant(
        "believe a footer whose extents are not whole",
        "stories",
        (
            Edit(
                "cerata.engine.recovery:_whole_toc",
                "wanted = list(toc.references())",
                "wanted = list(toc.references())[:0]",
            ),
        ),
    ),
    Plant(
        "append without taking in what others wrote",
        "schedules",
        (
            Edit(
                "cerata.engine.handle_lock:HandleLock.catch_up",
                "self._writer.catch_up(pages)",
                "pass",
            ),
        ),
    ),
    Plant(
        "cut off bytes though others are there",
        "schedules",
        (
            Edit(
                "cerata.engine.open:_join",
                "log.settle(recovered, alone=alone)",
                "log.settle(recovered, alone=True)",
            ),
        ),
    ),
    Plant(
        "call a sync again that failed",
        "promises",
        (
            Edit(
                _LOG + "_file_sync",
                "raise self._poison.take(error) from error",
                "self._state.log_file.file.sync()",
            ),
        ),
    ),
    Plant(
        "ignore a short write",
        "promises",
        (Edit("cerata.engine.storage:OsFile.write_at", "if written == len(data):", "if True:"),),
    ),
    Plant(
        "begin again where a short write began",
        "promises",
        (
            Edit(
                "cerata.engine.storage:OsFile.write_at",
                "rest[written:], offset + written",
                "rest[written:], offset",
            ),
        ),
    ),
    Plant(
        "lock for the process, not for the open file",
        "promises",
        (
            Edit(
                "cerata.engine.storage:OsFile._ofd",
                "_F_OFD_SETLK, _OFD_REQUESTS",
                "fcntl.F_SETLK, _OFD_REQUESTS",
            ),
        ),
    ),
    Plant(
        "leave a child its parent's handle",
        "promises",
        (
            Edit(
                _LOG + "abandon",
                "self._lock.abandon()",
                "pass",
            ),
        ),
    ),
    Plant(
        "go on from what an interrupt left",
        "promises",
        (
            Edit(
                "cerata.engine.handle_lock:HandleLock.begin_change",
                "if self._changing:",
                "if False:",
            ),
        ),
    ),
    Plant(
        "believe a saved projection unchecked",
        "promises",
        (
            Edit(
                "cerata.engine.file:LogFile.read_extent",
                "if own != self.file.read_at(header.body_offset + header.length, len(own)):",
                "if False:",
            ),
        ),
    ),
    Plant(
        "a projection that reads the clock",
        "promises",
        (
            Edit(
                "cerata.projections.rows.tags:Tags.apply",
                "(body.at, event.seq))",
                "(body.at, __import__('time').monotonic_ns()))",
            ),
        ),
    ),
    Plant(
        "a projection that forgets what it folded before",
        "promises",
        (
            Edit(
                "cerata.projections.frames.projection:FramesProjection._fold",
                "else:",
                "elif events[0].seq == 1:",
            ),
        ),
    ),
)
"""The catalogue. Grows with the engine; docs/reliability.md asks for at least 25 bugs."""

BY_NAME = {plant.name: plant for plant in PLANTS}
