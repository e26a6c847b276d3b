"""SentencePiece tokenizers, unigram and byte-pair."""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Iterable, Mapping

from keras_arch.text.first_space import FirstSpace
from keras_arch.text.literals import Literals
from keras_arch.text.sentence_piece_model import make_control
from keras_arch.text.sentence_piece_training import SENTENCE_PIECE_TOKENS, train_model
from keras_arch.text.special_tokens import check_special_tokens, check_text
from keras_arch.text.spellings import SpellingTokenizer

MODEL_FILE = "sentencepiece.model"
SPACE = "\u2581"  # How SentencePiece spells a space.
PREPEND_SCHEMES = ("first", "always", "never")
NONE = types.MappingProxyType({})


class SentencePieceTokenizer(SpellingTokenizer):
    """A SentencePiece model: pieces over the whole text, spaces included.

    With a model of `train`, `decode(encode(text))` is `text`, always. A model from elsewhere does
    what it was made to: it may normalize characters, join spaces, begin each text with a space
    (which `decode` takes away again) and have an unknown token; then U+2581 is a space, too.

    The `sentencepiece` package trains it and encodes in Python; tensorflow_text encodes inside
    graphs, with the same ids.

    Args:
        model: The content of the model's file.
        special_tokens: Role to name, a piece of the model, beyond those that the model itself
            names: unknown, begin, end and pad. No text gives these pieces, even if the model has
            them as user-defined symbols; what other such symbols it has are parts of texts.
        prepend_scheme: Where a space comes before a text that does not begin with one, for a model
            that puts none there itself: `"first"` at its very beginning, `"always"` also behind
            special tokens, or `"never"`; U+2581 is a space then. Default: as the model does it.
            As `Metaspace` of the `tokenizers` package.

    Source: Kudo and Richardson 2018; Kudo 2018 for unigram models.
    """

    name = "sentence_piece"
    FILES = (MODEL_FILE,)

    def __init__(
        self,
        model: bytes,
        special_tokens: Mapping[str, str] = NONE,
        prepend_scheme: str | None = None,
    ):
        if prepend_scheme not in (None, *PREPEND_SCHEMES):
            raise ValueError(
                f"prepend_scheme must be None or one of {PREPEND_SCHEMES}; received "
                f"prepend_scheme={prepend_scheme!r}."
            )
        self.prepend_scheme = prepend_scheme
        special_tokens = check_special_tokens(special_tokens)
        self.model = bytes(model)
        processor = load_processor(self.model)
        self._pieces = model_pieces(processor)
        super().__init__({**named_by(processor), **special_tokens})
        missing = [name for name in self.special_tokens.values() if name not in self._pieces]
        if missing:
            raise ValueError(f"special_tokens must be pieces of the model; received {missing}.")
        self._special_ids = {
            role: self._pieces.index(name) for role, name in self.special_tokens.items()
        }
        special = {
            i
            for i in self._special_ids.values()
            if not processor.is_unknown(i) and not processor.is_control(i)
        }
        self._working_model = make_control(self.model, special)
        self._processor = load_processor(self._working_model)
        self._spellings = [self._spelling(i) for i in range(len(self._pieces))]
        own_space = self._processor.normalize("a").startswith(SPACE)
        self._begins_with_space = own_space or prepend_scheme in ("first", "always")

    @classmethod
    def train(
        cls,
        sources: Iterable[str | os.PathLike],
        vocabulary_size: int,
        algorithm: str = "unigram",
        special_tokens: Mapping[str, str] = SENTENCE_PIECE_TOKENS,
        character_coverage: float = 0.9995,
    ) -> SentencePieceTokenizer:
        """Learns a model that loses nothing; the same sources give the same one.

        Characters that are no piece are spelt in bytes. Files are streamed; the library keeps the
        distinct lines in memory.

        Args:
            sources: Texts (`str`) and UTF-8 text files (`pathlib.Path`), in any mixture.
            vocabulary_size: Largest number of pieces, at least 256 bytes, the special tokens and
                the characters that are covered. A small corpus may give fewer.
            algorithm: `"unigram"` or `"bpe"`.
            special_tokens: Role to name; they get the ids from 0 on, the unknown token first.
            character_coverage: Share of the corpus that consists of characters which are
                pieces, between 0.98 and 1; the rare others are spelt in bytes.

        Raises:
            ValueError: If the sources hold no text, or an argument is out of range.
        """
        model = train_model(sources, vocabulary_size, algorithm, special_tokens, character_coverage)
        return cls(model, special_tokens)

    @property
    def special_ids(self) -> dict[str, int]:
        """Ids of the special tokens, by role."""
        return dict(self._special_ids)

    @property
    def resources(self) -> list:
        """The model, as tensorflow_text holds it."""
        return [self._graph]

    def encode(self, text, parse_special=False):
        """Returns the token ids of a text; `[]` for `""`. See `Tokenizer.encode`."""
        if self.prepend_scheme == "first":
            text = self._before(parse_special).add(check_text(text))
        return super().encode(text, parse_special)

    def encode_tensor(self, texts, parse_special=False):
        """Encodes a batch inside a graph. See `Tokenizer.encode_tensor`."""
        if self.prepend_scheme == "first":
            texts = self._before(parse_special).add_tensor(texts)
        return super().encode_tensor(texts, parse_special)

    def _encode(self, text):
        text = check_text(text)
        if self.prepend_scheme == "always":
            text = self._before(False).add(text)
        return self._space_symbol.encode(text, self._processor.encode)

    def _encode_tensor(self, texts):
        import tensorflow as tf

        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        if self.prepend_scheme == "always":
            texts = self._before(False).add_tensor(texts)
        return self._space_symbol.encode_tensor(texts, self._graph.encode)

    def _before(self, parse_special):
        """Adds a space before a text that begins with none, nor with what stands for itself."""
        names = self.special_tokens.values() if parse_special else ()
        return FirstSpace((" ", SPACE, *names))

    def _settings(self):
        scheme = {"prepend_scheme": self.prepend_scheme} if self.prepend_scheme else {}
        return {"special_tokens": self.special_tokens, **scheme}

    def _files(self):
        return {MODEL_FILE: self.model}

    @classmethod
    def _from_parts(cls, settings, files):
        special_tokens = settings.get("special_tokens", {})
        return cls(files[MODEL_FILE], special_tokens, settings.get("prepend_scheme"))

    def _spelling(self, token):
        piece = self._pieces[token]
        special = self._processor.is_control(token) or self._processor.is_unknown(token)
        return piece.encode("utf-8") if special else spelling(self._processor, piece)

    @functools.cached_property
    def _space_symbol(self) -> Literals:
        """Spells U+2581 in bytes, where the model else keeps everything as it is."""
        in_bytes = [f"<0x{byte:02X}>" for byte in SPACE.encode("utf-8")]
        keeps_spaces = self._processor.normalize("  a ") == f"{SPACE}{SPACE}a{SPACE}"
        if self.prepend_scheme or not keeps_spaces or not set(in_bytes) <= set(self._pieces):
            return Literals({})
        return Literals({SPACE: [self._pieces.index(piece) for piece in in_bytes]})

    @functools.cached_property
    def _graph(self):
        from keras_arch.text.sentence_piece_graph import SentencePieceModel

        return SentencePieceModel(self._working_model)


def load_processor(model: bytes):
    """Returns the `sentencepiece` package's reading of a model's file.

    Raises:
        ValueError: If it is none.
    """
    import sentencepiece

    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        if model and processor.get_piece_size():  # The library takes an empty model.
            return processor
        problem = "it has no pieces"
    except RuntimeError as error:
        problem = error
    raise ValueError(
        f"model must be a SentencePiece model; received {len(model)} bytes that are none: {problem}"
    )


def model_pieces(processor) -> list[str]:
    """Returns the pieces of a model by id."""
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


def spelling(processor, piece: str) -> bytes:
    """Returns what a piece that is not special stands for in a text."""
    if processor.is_byte(processor.piece_to_id(piece)):
        return bytes([int(piece.removeprefix("<0x").removesuffix(">"), 16)])
    return piece.replace(SPACE, " ").encode("utf-8")


def named_by(processor) -> dict[str, str]:
    """Returns role to name, as a model itself knows them; an id of -1 means that it has none."""
    ids = {
        "unknown": processor.unk_id(),
        "begin": processor.bos_id(),
        "end": processor.eos_id(),
        "pad": processor.pad_id(),
    }
    return {role: processor.id_to_piece(i) for role, i in ids.items() if i >= 0}
