"""How a text is split into words before byte pairs are merged."""

from __future__ import annotations

from typing import NamedTuple

from keras_arch.text.white_space import SPACE, WITHIN_LINE


class Pattern(NamedTuple):
    """One way to split, as two regular expressions that do the same.

    Attributes:
        published: Of the `tokenizers` package.
        words: Of RE2, which has no look-ahead; `last_space` stands in for it.
        last_space: A space before a word, which never belongs to the run of spaces before it, and
            the character after it.
    """

    published: str
    words: str
    last_space: str


def _with_line_ends(digits: str) -> Pattern:
    """Returns the pattern of LLaMA 3 and its followers, which differ in the runs of digits."""
    first = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits
    return Pattern(
        rf"{first}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        rf"{first}| ?[^{SPACE}\p{{L}}\p{{N}}]+[\r\n]*|[{SPACE}]*[\r\n]+|[{SPACE}]+",
        rf"([{WITHIN_LINE}])([^{SPACE}])",
    )


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+"

#: Name -> pattern. Sources: the code published with Radford et al. 2019, with Grattafiori et al.
#: 2024 (LLaMA 3) and with Yang et al. 2024 (Qwen2).
PATTERNS = {
    "gpt2": Pattern(
        rf"{_GPT2}| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+",
        rf"{_GPT2}| ?[^{SPACE}\p{{L}}\p{{N}}]+|[{SPACE}]+",
        rf"([{SPACE}])([^{SPACE}])",
    ),
    "llama3": _with_line_ends(r"\p{N}{1,3}"),
    "qwen2": _with_line_ends(r"\p{N}"),
}
