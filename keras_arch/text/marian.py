"""Tokenizers of Marian's translators: a SentencePiece model beside a vocabulary of its own."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from keras_arch.text.files import format_json, parse_json
from keras_arch.text.sentence_piece import MODEL_FILE, SPACE, load_processor, spelling
from keras_arch.text.special_tokens import check_special_tokens, check_text
from keras_arch.text.spellings import SpellingTokenizer
from keras_arch.text.tokenizer_json import tokens_by_id

VOCABULARY_FILE = "vocab.json"


class MarianTokenizer(SpellingTokenizer):
    """The pieces of a SentencePiece model with the ids of a vocabulary, as OPUS-MT's.

    Source and target have a model each, and mostly one vocabulary of both. What the model makes of
    a text and is not in the vocabulary is the unknown token. The model may normalize characters,
    join spaces and begin each text with a space, which `decode` takes away again.

    Args:
        model: The content of the model's file.
        vocabulary: Tokens by id: pieces, also of other models, and the special tokens.
        special_tokens: Role to name, a token of `vocabulary`; `"unknown"` is needed. No text gives
            them.

    Source: Junczys-Dowmunt et al. 2018 for Marian.
    """

    name = "marian"
    FILES = (MODEL_FILE, VOCABULARY_FILE)

    def __init__(self, model: bytes, vocabulary: Sequence[str], special_tokens: Mapping[str, str]):
        super().__init__(check_special_tokens(special_tokens))
        self.model, self.vocabulary = bytes(model), tuple(vocabulary)
        ids = {token: i for i, token in enumerate(self.vocabulary)}
        if len(ids) < len(self.vocabulary):
            raise ValueError(
                f"vocabulary must hold each token once; received {len(self.vocabulary)} tokens of "
                f"which {len(ids)} are distinct."
            )
        missing = [name for name in self.special_tokens.values() if name not in ids]
        if missing or "unknown" not in self.special_tokens:
            raise ValueError(
                "special_tokens must be tokens of the vocabulary, one of them unknown; received "
                f"{self.special_tokens}, {missing} of which the vocabulary lacks."
            )
        self._special_ids = {role: ids[name] for role, name in self.special_tokens.items()}
        special = {*self.special_tokens.values()}
        self._ids = {token: i for token, i in ids.items() if token not in special}
        self._processor = load_processor(self.model)
        self._spellings = [
            token.encode("utf-8") if token in special else spelling(self._processor, token)
            for token in self.vocabulary
        ]
        self._begins_with_space = self._processor.normalize("a").startswith(SPACE)

    @property
    def special_ids(self) -> dict[str, int]:
        """Ids of the special tokens, by role."""
        return dict(self._special_ids)

    @property
    def resources(self) -> list:
        """The model, as tensorflow_text holds it, and the table of ids."""
        return [self._graph, self._table]

    def _encode(self, text):
        pieces = self._processor.encode(check_text(text), out_type=str)
        return [self._ids.get(piece, self._special_ids["unknown"]) for piece in pieces]

    def _encode_tensor(self, texts):
        import tensorflow as tf

        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        pieces = self._graph.encode(texts, tf.string)
        return pieces.with_flat_values(self._table.lookup(pieces.flat_values))

    def _settings(self):
        return {"special_tokens": self.special_tokens}

    def _files(self):
        ids = {token: i for i, token in enumerate(self.vocabulary)}
        return {MODEL_FILE: self.model, VOCABULARY_FILE: format_json(ids)}

    @classmethod
    def _from_parts(cls, settings, files):
        vocabulary = tokens_by_id(parse_json(files[VOCABULARY_FILE]))
        return cls(files[MODEL_FILE], vocabulary, settings.get("special_tokens", {}))

    @functools.cached_property
    def _graph(self):
        from keras_arch.text.sentence_piece_graph import SentencePieceModel

        return SentencePieceModel(self.model)

    @functools.cached_property
    def _table(self):
        import tensorflow as tf

        # The first call may come while a graph is traced; the table must outlive that graph.
        with tf.init_scope():
            pairs = tf.lookup.KeyValueTensorInitializer(
                [*self._ids], [*self._ids.values()], tf.string, tf.int32
            )
            return tf.lookup.StaticHashTable(pairs, default_value=self._special_ids["unknown"])
