import pytest

from keras_arch.text.byte_pair_words import PATTERNS

pytestmark = pytest.mark.once


# What they do is tested with the graph.
def test_patterns_are_as_published():
    llama3 = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    assert {name: pattern.published for name, pattern in PATTERNS.items()} == {
        "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        "llama3": llama3,
        "qwen2": llama3.replace("{1,3}", ""),
    }
