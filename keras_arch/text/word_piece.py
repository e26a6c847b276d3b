"""BERT's WordPiece tokenizer: words, cut into the longest known pieces."""

from __future__ import annotations

import functools
import os
import types
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from keras_arch.checks import check_positive
from keras_arch.text.bert_words import BertWords
from keras_arch.text.files import split_lines, training_blocks
from keras_arch.text.places import Places
from keras_arch.text.special_tokens import check_special_tokens, check_text, distinct
from keras_arch.text.subword_training import check_vocabulary_size, learn
from keras_arch.text.tokenizer import Tokenizer
from keras_arch.text.word_joiner import CONTINUATION, WordJoiner

VOCABULARY_FILE = "vocab.txt"
LONGEST_WORD = 100
# BERT's, in the order of its ids.
BERT_TOKENS = types.MappingProxyType(
    {
        "pad": "[PAD]",
        "unknown": "[UNK]",
        "classification": "[CLS]",
        "separator": "[SEP]",
        "mask": "[MASK]",
    }
)


class WordPieceTokenizer(Tokenizer):
    """BERT's words, each cut into pieces from the left, the longest known piece first.

    It loses what BERT's words lose: spaces, control characters, case and accents where asked; a
    word of more than 100 characters or with a character that is in no piece becomes the unknown
    token. `decode` puts a space between words, but none where both sides are characters that are
    written without spaces (Chinese and Japanese).

    The `tokenizers` package trains it and encodes in Python; tensorflow_text encodes inside
    graphs. Both read the words from one table and give the same ids.

    Args:
        vocabulary: Distinct pieces; `vocabulary[i]` gets id i. Those that continue a word begin
            with `##`.
        special_tokens: Role to name, a piece of `vocabulary`; `"unknown"` must be there.
        lowercase: Whether letters are lowercased.
        strip_accents: Whether letters lose their accents; default as `lowercase`.
        part_ideographs: Whether a Chinese character is a word by itself.

    Source: Wu et al. 2016, section 4.1; Devlin et al. 2019, section 3.
    """

    name = "word_piece"
    FILES = (VOCABULARY_FILE,)

    def __init__(
        self,
        vocabulary: Sequence[str],
        special_tokens: Mapping[str, str] = BERT_TOKENS,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        part_ideographs: bool = True,
    ):
        super().__init__(special_tokens)
        self.vocabulary = tuple(vocabulary)
        _check_vocabulary(self.vocabulary, self.special_tokens)
        self._words = _words(lowercase, strip_accents, part_ideographs)
        self.lowercase, self.strip_accents = self._words.lowercase, self._words.strip_accents
        self.part_ideographs = part_ideographs
        self._joiner = WordJoiner(self.vocabulary)
        special = set(self.special_tokens.values())
        # No word holds a space, so none gives a special token.
        self._pieces = [f" {piece}" if piece in special else piece for piece in self.vocabulary]
        self._unknown = f" {self.special_tokens['unknown']}"
        self._encoder = _encoder(
            vocab={piece: i for i, piece in enumerate(self._pieces)}, unk_token=self._unknown
        )

    @classmethod
    def train(
        cls,
        sources: Iterable[str | os.PathLike],
        vocabulary_size: int,
        special_tokens: Mapping[str, str] = BERT_TOKENS,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        alphabet_size: int = 1000,
    ) -> WordPieceTokenizer:
        """Learns a vocabulary; the same sources give the same one. Files are read twice.

        Args:
            sources: Texts (`str`) and UTF-8 text files (`pathlib.Path`), in any mixture.
            vocabulary_size: Largest number of pieces, at least the special tokens and two for
                each character of the alphabet. A small corpus may give fewer.
            special_tokens: Role to name; they get the ids from 0 on.
            lowercase: As for the tokenizer.
            strip_accents: As for the tokenizer.
            alphabet_size: Most characters that have pieces, the frequent ones; words with others
                become the unknown token.

        Raises:
            ValueError: If the sources hold no text, or an argument is out of range.
        """
        import tokenizers

        check_positive(alphabet_size=alphabet_size)
        sources = sources if isinstance(sources, (str, os.PathLike)) else list(sources)
        special = distinct(check_special_tokens(special_tokens))
        words = _words(lowercase, strip_accents)
        counts = Counter()
        for block in training_blocks(sources):
            counts.update(words.spread(check_text(block)))
        del counts[" "]
        alphabet = sorted(sorted(counts), key=counts.get, reverse=True)[:alphabet_size]
        first = [*special, *alphabet, *(CONTINUATION + character for character in alphabet)]
        check_vocabulary_size(
            vocabulary_size,
            len(first),
            f"the special tokens and an alphabet of {len(alphabet)} characters (see alphabet_size)",
        )
        # Single characters go first as if they were special: left to itself, the trainer numbers
        # them in an order that changes from run to run, and breaks ties by these numbers.
        trainer = tokenizers.trainers.WordPieceTrainer(
            vocab_size=vocabulary_size,
            special_tokens=list(dict.fromkeys(first)),
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            continuing_subword_prefix=CONTINUATION,
            show_progress=False,
        )
        blocks = map(words.spread, training_blocks(sources))
        vocabulary = learn(_encoder(unk_token="[UNK]"), trainer, blocks)["vocab"]
        pieces = sorted(vocabulary, key=vocabulary.get)
        return cls(pieces, special_tokens, lowercase, strip_accents)

    @classmethod
    def from_words(
        cls,
        sources: Iterable[str | os.PathLike],
        vocabulary_size: int,
        special_tokens: Mapping[str, str] = BERT_TOKENS,
        lowercase: bool = True,
        strip_accents: bool | None = None,
    ) -> WordPieceTokenizer:
        """Takes the most frequent words as they are; any other word is the unknown token.

        Args:
            sources: As for `train`.
            vocabulary_size: Largest number of words and special tokens.
            special_tokens: Role to name; they get the ids from 0 on.
            lowercase: As for the tokenizer.
            strip_accents: As for the tokenizer.

        Raises:
            ValueError: If the sources hold no text, or an argument is out of range.
        """
        special = distinct(check_special_tokens(special_tokens))
        check_vocabulary_size(vocabulary_size, len(special) + 1, "the special tokens and a word")
        words = _words(lowercase, strip_accents)
        counts = Counter()
        for block in training_blocks(sources):
            counts.update(words.spread(check_text(block)).split())
        frequent = sorted(sorted(counts), key=counts.get, reverse=True)
        vocabulary = [*special, *frequent[: vocabulary_size - len(special)]]
        return cls(vocabulary, special_tokens, lowercase, strip_accents)

    @property
    def vocabulary_size(self) -> int:
        """Number of pieces."""
        return len(self.vocabulary)

    @property
    def special_ids(self) -> dict[str, int]:
        """Ids of the special tokens, by role."""
        return {role: self.vocabulary.index(token) for role, token in self.special_tokens.items()}

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the words of ids, with spaces between them; see the class."""
        return self._joiner.join(self.check_ids(ids))

    def decode_tensor(self, ids):
        """Decodes dense or ragged int `[B, T]` to string `[B]`, inside a graph."""
        return self._joiner.join_tensor(ids)

    def locate(self, text):
        """Encodes a text and says where in it each token stands."""
        found = self._encoder.encode(self._words.spread(check_text(text)))
        sources = self._words.sources(text)
        starts = [sources[first] for first, _ in found.offsets]
        ends = [sources[last - 1] + 1 for _, last in found.offsets]
        return Places(found.ids, starts, ends, found.word_ids)

    def locate_tensor(self, texts):
        """Does inside a graph what `locate` does, for string `[B]`."""
        return self._graph.locate(texts)

    def _encode(self, text):
        return self._encoder.encode(self._words.spread(check_text(text))).ids

    def _encode_tensor(self, texts):
        return self._graph.encode(texts)

    def _settings(self):
        return {
            "special_tokens": self.special_tokens,
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "part_ideographs": self.part_ideographs,
        }

    def _files(self):
        return {VOCABULARY_FILE: ("\n".join(self.vocabulary) + "\n").encode("utf-8")}

    @classmethod
    def _from_parts(cls, settings, files):
        return cls(
            split_lines(files[VOCABULARY_FILE]),
            settings.get("special_tokens", BERT_TOKENS),
            settings.get("lowercase"),
            settings.get("strip_accents"),
            settings.get("part_ideographs", True),
        )

    @functools.cached_property
    def _graph(self):
        from keras_arch.text.word_piece_graph import WordPieceGraph

        table = self._words.table()
        return WordPieceGraph(
            self._pieces, self._unknown, table, self.part_ideographs, LONGEST_WORD
        )


def _words(lowercase: bool, strip_accents: bool | None, part_ideographs: bool = True) -> BertWords:
    options = {
        "lowercase": lowercase,
        "strip_accents": lowercase if strip_accents is None else strip_accents,
        "part_ideographs": part_ideographs,
    }
    for name, value in options.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False; received {name}={value!r}.")
    return BertWords(**options)


def _encoder(**model):
    import tokenizers

    encoder = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(
            **model,
            continuing_subword_prefix=CONTINUATION,
            max_input_chars_per_word=LONGEST_WORD,
        )
    )
    encoder.pre_tokenizer = tokenizers.pre_tokenizers.CharDelimiterSplit(" ")
    return encoder


def _check_vocabulary(vocabulary: tuple[str, ...], special_tokens: Mapping[str, str]) -> None:
    lines = {}
    for i, piece in enumerate(vocabulary):
        if not isinstance(piece, str) or not piece:
            raise ValueError(
                f"vocabulary must hold strings that are not empty; received vocabulary[{i}]="
                f"{piece!r}."
            )
        if lines.setdefault(piece, i) != i:
            raise ValueError(
                f"vocabulary must be distinct; received {piece!r} as vocabulary[{lines[piece]}] "
                f"and as vocabulary[{i}]."
            )
    if "unknown" not in special_tokens:
        raise ValueError(
            "special_tokens must name the unknown token; "
            f"received special_tokens={dict(special_tokens)}."
        )
    missing = [token for token in special_tokens.values() if token not in lines]
    if missing:
        raise ValueError(
            f"vocabulary must hold the special tokens; received one without {missing}."
        )
