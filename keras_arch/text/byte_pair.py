"""A byte-level byte-pair tokenizer: any text, no unknown token."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence

from keras_arch.text.byte_pair_words import PATTERNS
from keras_arch.text.byte_symbols import BYTE_OF_SYMBOL, SYMBOLS, token_bytes
from keras_arch.text.files import format_json, parse_json, split_lines, training_blocks
from keras_arch.text.places import Places
from keras_arch.text.special_tokens import (
    END_OF_TEXT,
    check_special_tokens,
    check_text,
    distinct,
)
from keras_arch.text.spellings import SpellingTokenizer
from keras_arch.text.subword_training import check_vocabulary_size, learn

VOCABULARY_FILE = "vocab.json"
MERGES_FILE = "merges.txt"


class BytePairTokenizer(SpellingTokenizer):
    """GPT-2's byte-level byte-pair encoding; `decode(encode(text))` is `text`, always.

    The `tokenizers` package trains it and encodes in Python; core TensorFlow encodes inside graphs.
    Both give the same ids, but for characters newer than the Unicode tables of TensorFlow's
    regular expressions (see `split_words`).

    Args:
        vocabulary: Token to id, 0 to V - 1. Special tokens have their names; all others are
            spelt in GPT-2's byte symbols, all 256 of which must be there.
        merges: Pairs of tokens whose joined spelling is a token, the most frequent first.
        special_tokens: Role to name, a key of `vocabulary`.
        pattern: How texts are split into words: as by `"gpt2"`, `"llama3"` or `"qwen2"`.
        takes_space: Names of special tokens that take the white space before them, as RoBERTa's
            mask does.
        whole_words: Whether a word that is a token becomes that token, even if no merges lead to
            it, as LLaMA 3's.
        composes: Whether characters are composed first (Unicode's NFC), as Qwen2's are; then a text
            decodes to its composed form.

    Source: Sennrich et al. 2016, section 3.2; Radford et al. 2019, section 2.2.
    """

    name = "byte_pair"
    FILES = (VOCABULARY_FILE, MERGES_FILE)

    def __init__(
        self,
        vocabulary: dict[str, int],
        merges: Sequence[tuple[str, str]],
        special_tokens: Mapping[str, str] = END_OF_TEXT,
        pattern: str = "gpt2",
        takes_space: Sequence[str] = (),
        whole_words: bool = False,
        composes: bool = False,
    ):
        super().__init__(special_tokens)
        if pattern not in PATTERNS:
            raise ValueError(f"pattern must be one of {[*PATTERNS]}; received pattern={pattern!r}.")
        self.pattern, self.takes_space = pattern, tuple(takes_space)
        self.whole_words, self.composes = bool(whole_words), bool(composes)
        self.vocabulary = dict(vocabulary)
        self.merges = [tuple(pair) for pair in merges]
        special = distinct(self.special_tokens)
        _check_ids(self.vocabulary, special)
        # Without the special tokens nothing can merge into one.
        plain = {token: i for token, i in self.vocabulary.items() if token not in special}
        _check_spellings(plain, self.merges)
        self._spellings = [b""] * len(self.vocabulary)
        for token, token_id in self.vocabulary.items():
            spelling = token.encode("utf-8") if token in special else token_bytes(token)
            self._spellings[token_id] = spelling
        self._encoder = _encoder(
            pattern, composes, vocab=plain, merges=self.merges, ignore_merges=self.whole_words
        )

    @classmethod
    def train(
        cls,
        sources: Iterable[str | os.PathLike],
        vocabulary_size: int,
        special_tokens: Mapping[str, str] = END_OF_TEXT,
    ) -> BytePairTokenizer:
        """Learns a vocabulary; the same sources give the same one. Files are streamed.

        Args:
            sources: Texts (`str`) and UTF-8 text files (`pathlib.Path`), in any mixture.
            vocabulary_size: Largest number of tokens, at least 256 and the special tokens.
                A small corpus may give fewer.
            special_tokens: Role to name; they get the ids from 0 on.

        Raises:
            ValueError: If the sources hold no text, or an argument is out of range.
        """
        import tokenizers

        special = distinct(check_special_tokens(special_tokens))
        content = "the 256 bytes and the special tokens"
        check_vocabulary_size(vocabulary_size, len(SYMBOLS) + len(special), content)
        blocks = training_blocks(sources)
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=vocabulary_size - len(special),
            initial_alphabet=SYMBOLS,
            show_progress=False,
        )
        model = learn(_encoder("gpt2", False), trainer, blocks)
        taken = [token for token in special if token in model["vocab"]]
        if taken:
            raise ValueError(
                "special_tokens must have names that no text is spelt with, as <|name|>; "
                f"received {taken}, which the corpus made tokens of."
            )
        learned = sorted(model["vocab"], key=model["vocab"].get)
        vocabulary = {token: i for i, token in enumerate([*special, *learned])}
        return cls(vocabulary, model["merges"], special_tokens)

    @property
    def special_ids(self) -> dict[str, int]:
        """Ids of the special tokens, by role."""
        return {role: self.vocabulary[token] for role, token in self.special_tokens.items()}

    def locate(self, text):
        """Encodes a text and says where each token stands, without the space before a word."""
        self._check_locates()
        found = self._encoder.encode(check_text(text))
        starts = [a + (b - a > 1 and text[a] == " ") for a, b in found.offsets]
        return Places(found.ids, starts, [b for _, b in found.offsets], found.word_ids)

    def locate_tensor(self, texts):
        """Does inside a graph what `locate` does, for string `[B]`."""
        self._check_locates()
        return self._graph.locate(texts, self._spellings)

    def _check_locates(self):
        if self.composes:
            raise ValueError(
                "tokenizer must leave characters as they are to tell where its tokens stand; "
                "received one that composes them."
            )

    def _encode(self, text):
        return self._encoder.encode(check_text(text)).ids

    def _encode_tensor(self, texts):
        return self._graph.encode(texts)

    def _settings(self):
        return {
            "special_tokens": self.special_tokens,
            "pattern": self.pattern,
            "takes_space": self.takes_space,
            "whole_words": self.whole_words,
            "composes": self.composes,
        }

    def _files(self):
        lines = ["#version: 0.2", *(" ".join(pair) for pair in self.merges)]
        return {
            VOCABULARY_FILE: format_json(self.vocabulary),
            MERGES_FILE: ("\n".join(lines) + "\n").encode("utf-8"),
        }

    @classmethod
    def _from_parts(cls, settings, files):
        return cls(
            parse_json(files[VOCABULARY_FILE]),
            parse_merges(files[MERGES_FILE]),
            settings.get("special_tokens"),
            settings.get("pattern", "gpt2"),
            settings.get("takes_space", ()),
            settings.get("whole_words", False),
            settings.get("composes", False),
        )

    @functools.cached_property
    def _graph(self):
        from keras_arch.text.byte_pair_graph import BytePairGraph

        words = self._words_beyond_merges()
        pattern = PATTERNS[self.pattern]
        return BytePairGraph(self.vocabulary, self.merges, pattern, self.composes, words)

    def _words_beyond_merges(self):
        """Returns the bytes of words that are tokens though merges do not lead to them -> ids."""
        import tokenizers

        if not self.whole_words:
            return {}
        special = set(self.special_tokens.values())
        plain = {token: i for token, i in self.vocabulary.items() if token not in special}
        merged = tokenizers.models.BPE(plain, self.merges)
        return {
            token_bytes(token): i for token, i in plain.items() if len(merged.tokenize(token)) > 1
        }


def parse_merges(content: bytes) -> list[tuple[str, ...]]:
    """Returns the pairs in the content of a `merges.txt`."""
    lines = split_lines(content)
    if lines and lines[0].startswith("#version"):
        del lines[0]
    return [tuple(line.split(" ")) for line in lines if line]


def _encoder(pattern: str, composes: bool, **model):
    import tokenizers
    from tokenizers import pre_tokenizers

    words = tokenizers.Regex(PATTERNS[pattern].published)
    encoder = tokenizers.Tokenizer(tokenizers.models.BPE(**model))
    if composes:
        encoder.normalizer = tokenizers.normalizers.NFC()
    encoder.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(words, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return encoder


def _check_ids(vocabulary: dict[str, int], special: list[str]) -> None:
    if set(vocabulary.values()) != set(range(len(vocabulary))):
        raise ValueError(
            f"vocabulary must hold each id from 0 to {len(vocabulary) - 1} once; "
            f"received {len(vocabulary)} tokens with other ids."
        )
    missing = [token for token in (*SYMBOLS, *special) if token not in vocabulary]
    if missing:
        raise ValueError(
            "vocabulary must hold the 256 byte symbols and the special tokens; "
            f"received one without {missing[:3]}."
        )


def _check_spellings(plain: dict[str, int], merges: list[tuple]) -> None:
    single = [symbol for symbol in SYMBOLS if symbol not in plain]
    if single:
        raise ValueError(
            f"special_tokens must not be byte symbols; received the name {single[0]!r}."
        )
    foreign = [token for token in plain if not set(token) <= BYTE_OF_SYMBOL.keys()]
    if foreign:
        raise ValueError(
            f"vocabulary must be spelt in byte symbols; received the token {foreign[0]!r}."
        )
    for pair in merges:
        if len(pair) != 2 or not {*pair, "".join(pair)} <= plain.keys():
            raise ValueError(
                "merges must be pairs of tokens that join to a token of the vocabulary; "
                f"received {pair!r}."
            )
    if len(set(merges)) != len(merges):
        raise ValueError(
            f"merges must be distinct; received {len(merges)}, {len(set(merges))} of them distinct."
        )
