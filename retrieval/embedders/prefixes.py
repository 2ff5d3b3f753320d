"""Prefixes: words that some models read before each text, or before each question.

Example: E5 reads "passage: The bridge opens in May." and "query: When does the bridge open?".
"""

from cerata.engine.arguments import expect_text
from cerata.engine.integrity import hash_bytes

_DIGITS = 8


class Prefixes:
    """The prefixes of a model, each the empty string for none.

    Args:
        of_texts: before each stored text; part of the space's name, since it changes the vectors
        of_questions: before each question, whose vectors are in no space

    Raises:
        InvalidInput: a prefix is no string that UTF-8 can encode.
    """

    def __init__(self, of_texts: str, of_questions: str) -> None:
        self.of_texts = expect_text("text_prefix", of_texts)
        self.of_questions = expect_text("question_prefix", of_questions)

    def revision(self, revision: str) -> str:
        """Return the revision of the vectors of texts: other for each prefix of texts.

        >>> Prefixes("", "query: ").revision("1"), Prefixes("passage: ", "").revision("1")
        ('1', '1-prefix-b87d0bdc')
        """
        if not self.of_texts:
            return revision
        return f"{revision}-prefix-{hash_bytes(self.of_texts.encode()).hex()[:_DIGITS]}"
