"""Limits on all data written to or read from the file.

Each is checked on write, so that every file can be read, and on read, so that a damaged or hostile
length cannot exhaust memory. On disk: never lower a limit.
"""

SECTOR_SIZE = 512
"""The unit that a disk is trusted to write: no two acknowledgements share a sector."""

PAGE_SIZE = 4096
"""Size of one header page in bytes."""

RING_SIZE_MIN = 64 << 10
RING_SIZE_DEFAULT = 128 << 10
"""In bytes, of a new file: 13 bytes a document at 10,000 documents, where 512 KiB were 52."""

RING_SIZE_GROWN = 512 << 10
"""A smaller ring that fills in a large file is replaced by one of this many bytes."""

RING_SIZE_MAX = 1 << 30

TOC_SIZE_MAX = 4 << 20
"""Also of a manifest or ledger. Empty arrays of this size take 1.4 s and 325 MB to decode, in which
the decoder heeds no Ctrl-C; a TOC stays far smaller however long the log grows."""

BLOB_SIZE_MAX = 256 << 20
STRING_SIZE_MAX = 16 << 20
"""Maximum bytes of UTF-8 in a string."""

EMBEDDING_DIMENSION_MAX = 65_536
TOKEN_DIMENSION_MAX = 1024
"""Of token vectors: a sum of so many products of two int8 is at most 2**24, exact in float32."""

TOKEN_VECTORS_MAX = 8192
"""Maximum number of token vectors of a frame."""

NESTING_MAX = 64
BATCH_EVENTS_MAX = 10_000
EVENT_ATTACHMENTS_MAX = 64
NAME_SIZE_MAX = 255
"""Maximum bytes of UTF-8 in a name: an event type, a scope name, a tag of the log."""

SCOPE_NAMES_MAX = 64

TIME_MIN = -62_135_596_800_000_000
TIME_MAX = 253_402_300_799_999_999
"""The years 1 to 9999 of UTC in microseconds since 1970: the range of a clock."""

RECORDED_MAX = 2**63 - 1
"""The latest recorded time: the header page has a signed 64-bit field."""

IDEMPOTENCY_KEY_SIZE_MAX = 1024
ACTOR_SIZE_MAX = 256
REASON_SIZE_MAX = 4096
"""Maximum bytes of UTF-8 in an actor and in a reason."""

SEGMENT_INDEX_SIZE_MAX = 256 << 20
"""Maximum bytes of a segment's index after decompression."""

BLOCK_SIZE_TARGET = 16 << 10
"""Payload bytes per compressed block: a 16 KiB block decodes in about 21 us and compresses within
1 % of a 64 KiB block."""
