"""Files of profiles, which ``--profile`` takes beside the names of profiles."""

import json
from pathlib import Path
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.retrieval.ranking.profile import Profile

_SIZE_MAX: Final = 1 << 20
"""Far more than any profile."""


def profile_from(value: str | None) -> str | Profile | None:
    """Return the profile of a file, or a name unchanged; a file's name has a "." or a "/".

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file is no profile.
    """
    if value is None or not ("/" in value or Path(value).suffix == ".json"):
        return value
    # Imported here: the reader of files loads the formats of documents.
    from .input_files import opened_input

    remedy = "Pass the name of a profile, or a file that 'cerata tune --to' wrote."
    with opened_input(value, remedy) as (file, _):
        data = file.read(_SIZE_MAX + 1)
    try:
        if len(data) > _SIZE_MAX:
            raise InvalidInput("The file is too large for a profile", where=value, remedy=remedy)
        return Profile.from_dict(json.loads(data))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise InvalidInput(
                error.what, where=f"{value}, {error.where}", remedy=error.remedy
            ) from error
        raise InvalidInput(f"The file is not JSON: {error}", where=value, remedy=remedy) from error
