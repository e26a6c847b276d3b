"""BERT's way from a text to words, character by character.

Every character is replaced by itself, a variant, nothing, or itself between spaces; then spaces
part the words. No rule looks at a neighbour, so Python and a graph do the same from one table.
What becomes of a character, the `tokenizers` package says, the same under every Python.

Source: Devlin et al. 2019, and the tokenization of their published code.
"""

from __future__ import annotations

import functools

# Ideographs that are words by themselves; the package has the gap. (first, last)
IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
# With these beside them, ideographs make text that is written without spaces: CJK punctuation,
# Hiragana, Katakana and its extensions, full-width forms.
WITHOUT_SPACES = (
    *IDEOGRAPHS,
    (0x2B820, 0x2B91F),
    (0x3001, 0x303F),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0xFF01, 0xFFEF),
)
# For private use, which the package drops. (first, last)
PRIVATE = ((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
# Where Unicode has assigned characters, halves of pairs and private use apart.
ASSIGNED = (range(0xD800), range(0xF900, 0x40000), range(0xE0000, 0xE1000))


class BertWords(dict):
    """Code point to replacement, filled as it is used; `str.translate` takes it.

    Args:
        lowercase: Whether letters are lowercased.
        strip_accents: Whether letters lose their accents; Hangul falls into its letters.
        part_ideographs: Whether an ideograph is a word by itself.
    """

    def __init__(self, lowercase: bool, strip_accents: bool, part_ideographs: bool = True):
        super().__init__()
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.part_ideographs = part_ideographs

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
        normalize, split = self._steps
        # Between two letters it shows what it parts.
        words = [word for word, _ in split(f"a{normalize(chr(code))}a")]
        return " ".join(words)[1:-1]

    def table(self) -> dict[int, str]:
        """Returns the replacements of all code points that change.

        Private ones are left out, and ideographs that get spaces at their sides and nothing else.
        """
        table = {}
        for code in (code for codes in ASSIGNED for code in codes):
            new = self.replace(code)
            parted = self.part_ideographs and within(code, IDEOGRAPHS) and new == f" {chr(code)} "
            if new != chr(code) and not parted:
                table[code] = new
        return table

    @functools.cached_property
    def _steps(self):
        import tokenizers

        normalizer = tokenizers.normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.part_ideographs,
            strip_accents=self.strip_accents,
            lowercase=self.lowercase,
        )
        splitter = tokenizers.pre_tokenizers.BertPreTokenizer()
        return normalizer.normalize_str, splitter.pre_tokenize_str


def within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    """Returns whether a code point lies in one of the ranges."""
    return any(first <= code <= last for first, last in ranges)
