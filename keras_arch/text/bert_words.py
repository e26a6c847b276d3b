"""BERT's way from a text to words, character by character.

Every character is replaced by itself, a variant, nothing, or itself between spaces; then spaces
part the words. No rule looks at a neighbour, so Python and a graph do the same from one table.
The classes of characters are those of Python's `unicodedata`.

Source: Devlin et al. 2019, and the tokenization of their published code.
"""

from __future__ import annotations

import sys
import unicodedata

# Ideographs, which stand without spaces and are words by themselves. (first, last)
IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
# With these beside them, ideographs make text that is written without spaces: CJK punctuation,
# Hiragana, Katakana and its extensions, full-width forms.
WITHOUT_SPACES = (
    *IDEOGRAPHS,
    (0x3001, 0x303F),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0xFF01, 0xFFEF),
)
ASCII_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


class BertWords(dict):
    """Code point to replacement, filled as it is used; `str.translate` takes it.

    Args:
        lowercase: Whether letters are lowercased.
        strip_accents: Whether letters lose their accents; Hangul falls into its letters.
    """

    def __init__(self, lowercase: bool, strip_accents: bool):
        super().__init__()
        self.lowercase = lowercase
        self.strip_accents = strip_accents

    def __missing__(self, code: int) -> str:
        self[code] = replacement = self.replace(code)
        return replacement

    def spread(self, text: str) -> str:
        """Returns the words of a text with spaces between them."""
        return text.translate(self)

    def sources(self, text: str) -> list[int]:
        """Returns of each character that `spread` gives the place of the one it was made of."""
        return [i for i, character in enumerate(text) for _ in self[ord(character)]]

    def replace(self, code: int) -> str:
        """Returns what a code point becomes, a space at either side where it is a word."""
        character = chr(code)
        category = unicodedata.category(character)
        if category[0] == "Z" or character in "\t\n\r":
            return " "
        if category in ("Cc", "Cf") or character == "\ufffd":
            return ""
        if self.lowercase:
            character = character.lower()
        if self.strip_accents:
            character = unicodedata.normalize("NFD", character)
            character = "".join(c for c in character if unicodedata.category(c) != "Mn")
        if within(code, IDEOGRAPHS):
            return f" {character} "
        return "".join(f" {c} " if is_punctuation(c) else c for c in character)

    def table(self) -> dict[int, str]:
        """Returns the replacements of all code points that change.

        An ideograph that gets spaces at its sides and nothing else is left out.
        """
        table = {}
        for code in range(sys.maxunicode + 1):
            # Not assigned, private or half of a pair: nothing changes.
            if unicodedata.category(chr(code)) in ("Cn", "Co", "Cs"):
                continue
            new = self.replace(code)
            if new != chr(code) and (new != f" {chr(code)} " or not within(code, IDEOGRAPHS)):
                table[code] = new
        return table


def within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    """Returns whether a code point lies in one of the ranges."""
    return any(first <= code <= last for first, last in ranges)


def is_punctuation(character: str) -> bool:
    """Returns whether BERT takes a character for punctuation: ASCII's, symbols included."""
    return character in ASCII_PUNCTUATION or unicodedata.category(character)[0] == "P"
