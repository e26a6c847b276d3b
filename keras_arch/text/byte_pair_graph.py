"""Byte-level byte-pair encoding inside a TensorFlow graph, by keras_nlp."""

from __future__ import annotations

import string
from collections.abc import Sequence

import keras_nlp
import tensorflow as tf

from keras_arch.text.byte_symbols import BYTE_OF_SYMBOL, SYMBOLS

# Unicode's White_Space characters. RE2's own \s has only five of them.
SPACE = (
    r"\x09-\x0d\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
)
# GPT-2's words, less the look-ahead, which RE2 does not have: LAST_SPACE stands in for it.
WORD = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+"
    rf"| ?[^{SPACE}\p{{L}}\p{{N}}]+|[{SPACE}]+"
)
# The last space before a word never belongs to the run of spaces before it.
LAST_SPACE = rf"([{SPACE}])([^{SPACE}])"
# A byte that UTF-8 never uses, so no text holds it and no pattern matches it.
CUT = b"\xff"

# keras_nlp splits words once more, in its own way: it cuts runs of spaces where GPT-2 does not,
# knows 9 of the 25 space characters, and loses the digit U+096C, its private marker. It never
# cuts a run of letters, so every byte is handed over as a letter: an ASCII letter as itself,
# every other byte as the letter that lies 256 code points above it.
LETTERS = [
    chr(byte) if chr(byte) in string.ascii_letters else chr(256 + byte) for byte in range(256)
]


class BytePairGraph:
    """Byte-pair encoding of string tensors with GPT-2's split into words.

    keras_nlp's tokenizer does the merging and keeps every word it has seen: memory grows with
    the number of distinct words.

    Args:
        vocabulary: Token to id; tokens are spelt in byte symbols.
        merges: Pairs of tokens, the most frequent first.
        special_tokens: Tokens of the vocabulary that no text may ever give.
    """

    def __init__(
        self,
        vocabulary: dict[str, int],
        merges: Sequence[tuple[str, str]],
        special_tokens: Sequence[str],
    ):
        letter_merges = [
            tuple(SYMBOLS[part] for part in letter.encode("utf-8"))
            for letter in LETTERS
            if not letter.isascii()
        ]
        spelt = {
            _spell(token): token_id
            for token, token_id in vocabulary.items()
            if token not in special_tokens
        }
        # Halves of letters: always merged, so their ids never come out.
        halves = sorted({part for merge in letter_merges for part in merge})
        spelt.update({half: len(vocabulary) + i for i, half in enumerate(halves)})
        spelt_merges = [(_spell(left), _spell(right)) for left, right in merges]
        self._tokenizer = keras_nlp.tokenizers.BytePairTokenizer(
            vocabulary=spelt, merges=[" ".join(pair) for pair in letter_merges + spelt_merges]
        )

    @property
    def resources(self) -> list:
        """The tables of keras_nlp's tokenizer."""
        trackable = (tf.lookup.StaticHashTable, tf.Module)
        return [value for value in vars(self._tokenizer).values() if isinstance(value, trackable)]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode(self, texts):
        """Encodes string `[B]` to ragged int32 `[B, None]`."""
        words = split_words(texts)
        distinct, index = tf.unique(words.flat_values)
        tokens = tf.gather(self._tokenizer.tokenize(_spell_tensor(distinct)), index)
        return words.with_flat_values(tokens).merge_dims(1, 2)


def split_words(texts: tf.Tensor) -> tf.RaggedTensor:
    """Splits string `[B]` into GPT-2's words, ragged string `[B, None]`.

    Joined, the words are the text, but for bytes that are not UTF-8, which become U+FFFD.
    Letters and digits are those of RE2's Unicode tables; a newer character may split otherwise
    than in the `tokenizers` package, and decodes to the same text all the same.

    Source: Radford et al. 2019, and the regular expression of their published code.
    """
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    texts = tf.strings.regex_replace(texts, LAST_SPACE, CUT + rb"\1\2")
    texts = tf.strings.regex_replace(texts, WORD, rb"\0" + CUT)
    words = tf.strings.split(texts, sep=CUT)
    return tf.ragged.boolean_mask(words, words != "")


def _spell(token: str) -> str:
    """Rewrites a token in the byte symbols of the letters that stand for its bytes."""
    letters = "".join(LETTERS[BYTE_OF_SYMBOL[symbol]] for symbol in token)
    return "".join(SYMBOLS[byte] for byte in letters.encode("utf-8"))


def _spell_tensor(words: tf.Tensor) -> tf.Tensor:
    """Rewrites the bytes of string `[W]` as the letters that stand for them."""
    # Latin-1 reads every byte as one code point.
    codes = tf.strings.unicode_decode(words, "ISO-8859-1")
    letters = tf.constant([ord(letter) for letter in LETTERS])
    return tf.strings.unicode_encode(tf.gather(letters, codes), "UTF-8")
