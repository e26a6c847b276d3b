"""A byte-level byte-pair tokenizer: any text, no unknown token."""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from keras_arch.text.byte_symbols import BYTE_OF_SYMBOL, SYMBOLS, token_bytes
from keras_arch.text.files import read_blocks, read_json, write_bytes, write_json
from keras_arch.text.tokenizer import SETTINGS_FILE, Tokenizer

VOCABULARY_FILE = "vocab.json"
MERGES_FILE = "merges.txt"
END_TOKEN = "<|endoftext|>"


class BytePairTokenizer(Tokenizer):
    """GPT-2's byte-level byte-pair encoding; `decode(encode(text))` is `text`, always.

    The `tokenizers` package trains it and encodes in Python; keras_nlp encodes inside graphs.
    Both give the same ids, but for characters newer than the Unicode tables of TensorFlow's
    regular expressions (see `split_words`). The end token has an id and no spelling: its name
    inside a text is plain text.

    Args:
        vocabulary: Token to id, 0 to V - 1. Tokens are spelt in GPT-2's byte symbols, all 256
            of which must be there.
        merges: Pairs of tokens whose joined spelling is a token, the most frequent first.
        end_token: The token that ends a document; a key of `vocabulary`.

    Source: Sennrich et al. 2016, section 3.2; Radford et al. 2019, section 2.2.
    """

    name = "byte_pair"

    def __init__(
        self,
        vocabulary: dict[str, int],
        merges: Sequence[tuple[str, str]],
        end_token: str = END_TOKEN,
    ):
        self.vocabulary = dict(vocabulary)
        self.merges = [tuple(pair) for pair in merges]
        self.end_token = end_token
        _check_end_token(end_token)
        _check_vocabulary(self.vocabulary, self.merges, end_token)
        self._spellings = [b""] * len(self.vocabulary)
        for token, token_id in self.vocabulary.items():
            self._spellings[token_id] = token_bytes(token)
        self._encoder = _encoder(vocab=self.vocabulary, merges=self.merges)

    @classmethod
    def train(
        cls,
        sources: Iterable[str | os.PathLike],
        vocabulary_size: int,
        end_token: str = END_TOKEN,
    ) -> BytePairTokenizer:
        """Learns a vocabulary; the same sources give the same one. Files are streamed.

        Args:
            sources: Texts (`str`) and UTF-8 text files (`pathlib.Path`), in any mixture.
            vocabulary_size: Largest number of tokens, at least 257: the bytes and the end token.
                A small corpus may give fewer.
            end_token: Name of the end token; gets id 0.

        Raises:
            ValueError: If the sources hold no text, or an argument is out of range.
        """
        import tokenizers

        _check_end_token(end_token)
        if vocabulary_size <= len(SYMBOLS):
            raise ValueError(
                f"vocabulary_size must be at least {len(SYMBOLS) + 1}; "
                f"received vocabulary_size={vocabulary_size}."
            )
        if isinstance(sources, (str, os.PathLike)):
            raise ValueError(f"sources must be a list of texts and paths; received {sources!r}.")
        blocks = _blocks(sources)
        first = next(blocks, None)
        if first is None:
            raise ValueError("sources must hold some text; received none.")
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=vocabulary_size,
            special_tokens=[end_token],
            initial_alphabet=SYMBOLS,
            show_progress=False,
        )
        learner = _encoder()
        learner.train_from_iterator(itertools.chain([first], blocks), trainer)
        model = json.loads(learner.to_str())["model"]
        return cls(model["vocab"], model["merges"], end_token)

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens."""
        return len(self.vocabulary)

    @property
    def special_ids(self) -> dict[str, int]:
        """`{"end": id of the end token}`."""
        return {"end": self.vocabulary[self.end_token]}

    @property
    def resources(self) -> list:
        """The tables of keras_nlp's tokenizer."""
        return self._graph.resources

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text.

        Raises:
            ValueError: If the text holds half of a surrogate pair, which is no character.
        """
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(
                f"text must hold Unicode characters only; received {text[error.start]!r} "
                f"at position {error.start}."
            ) from error
        return self._encoder.encode(text).ids

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of ids; bytes that are not UTF-8 become U+FFFD."""
        spelling = b"".join(self._spellings[token] for token in self.check_ids(ids))
        return spelling.decode("utf-8", errors="replace")

    def encode_tensor(self, texts):
        """Encodes string `[B]` to ragged int32 `[B, None]`, inside a graph."""
        return self._graph.encode(texts)

    def decode_tensor(self, ids):
        """Decodes dense or ragged int `[B, T]` to string `[B]`, inside a graph."""
        import tensorflow as tf

        texts = tf.strings.reduce_join(tf.gather(tf.constant(self._spellings), ids), axis=-1)
        return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")

    def save(self, folder: str | os.PathLike) -> None:
        """Writes `vocab.json`, `merges.txt` and, last, `tokenizer.json`."""
        folder = Path(folder)
        lines = ["#version: 0.2", *(" ".join(pair) for pair in self.merges)]
        write_json(folder / VOCABULARY_FILE, self.vocabulary)
        write_bytes(folder / MERGES_FILE, ("\n".join(lines) + "\n").encode("utf-8"))
        settings = {"tokenizer": self.name, "end_token": self.end_token}
        write_json(folder / SETTINGS_FILE, settings)

    @classmethod
    def load(cls, folder: str | os.PathLike) -> BytePairTokenizer:
        """Reads what `save` wrote, or GPT-2's published files beside a `tokenizer.json`."""
        folder = Path(folder)
        lines = (folder / MERGES_FILE).read_text(encoding="utf-8").split("\n")
        if lines[0].startswith("#version"):
            del lines[0]
        merges = [tuple(line.split(" ")) for line in lines if line]
        end_token = read_json(folder / SETTINGS_FILE).get("end_token")
        return cls(read_json(folder / VOCABULARY_FILE), merges, end_token)

    @functools.cached_property
    def _graph(self):
        import tensorflow as tf

        from keras_arch.text.byte_pair_graph import BytePairGraph

        # The first call may come while a graph is traced; the tables must outlive that graph.
        with tf.init_scope():
            return BytePairGraph(self.vocabulary, self.merges, [self.end_token])


def _splitter():
    import tokenizers

    return tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)


def _encoder(**model):
    import tokenizers

    encoder = tokenizers.Tokenizer(tokenizers.models.BPE(**model))
    encoder.pre_tokenizer = _splitter()
    return encoder


def _blocks(sources: Iterable[str | os.PathLike]) -> Iterator[str]:
    for source in sources:
        if isinstance(source, str):
            if source:
                yield source
        else:
            yield from read_blocks(source)


def _check_end_token(end_token: str) -> None:
    """Makes sure that no text can give the end token's id."""
    plain = isinstance(end_token, str) and all("!" <= symbol <= "~" for symbol in end_token)
    # Merges never cross words, so a name of two words or more is no merged token.
    if not plain or len(_splitter().pre_tokenize_str(end_token)) < 2:
        raise ValueError(
            "end_token must be printable ASCII without spaces and mix letters with punctuation, "
            f"as {END_TOKEN!r} does; received end_token={end_token!r}."
        )


def _check_vocabulary(vocabulary: dict[str, int], merges: list[tuple], end_token: str) -> None:
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError(
            f"vocabulary must hold each id from 0 to {len(vocabulary) - 1} once; "
            f"received {len(vocabulary)} tokens with other ids."
        )
    missing = [token for token in (*SYMBOLS, end_token) if token not in vocabulary]
    if missing:
        raise ValueError(
            "vocabulary must hold the 256 byte symbols and the end token; "
            f"received one without {missing[:3]}."
        )
    foreign = [token for token in vocabulary if not set(token) <= BYTE_OF_SYMBOL.keys()]
    if foreign:
        raise ValueError(
            f"vocabulary must be spelt in byte symbols; received the token {foreign[0]!r}."
        )
    for pair in merges:
        if len(pair) != 2 or not {*pair, "".join(pair)} <= vocabulary.keys():
            raise ValueError(
                "merges must be pairs of tokens that join to a token of the vocabulary; "
                f"received {pair!r}."
            )
