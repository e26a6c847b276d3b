"""Joining pieces of words to a text: where the spaces go."""

from __future__ import annotations

from collections.abc import Sequence

from keras_arch.text.bert_words import WITHOUT_SPACES, within

CONTINUATION = "##"


class WordJoiner:
    """Puts spaces between words; none between two characters that are written without spaces.

    Args:
        pieces: Pieces by id; those that continue a word begin with `##`.
    """

    def __init__(self, pieces: Sequence[str]):
        self._continues = [
            piece.startswith(CONTINUATION) and piece != CONTINUATION for piece in pieces
        ]
        self._spellings = [
            piece.removeprefix(CONTINUATION) if continues else piece
            for piece, continues in zip(pieces, self._continues, strict=True)
        ]
        self._begins = [within(ord(piece[0]), WITHOUT_SPACES) for piece in self._spellings]
        self._ends = [within(ord(piece[-1]), WITHOUT_SPACES) for piece in self._spellings]

    def join(self, ids: Sequence[int]) -> str:
        """Returns the text of ids."""
        parts = []
        for i, token in enumerate(ids):
            dense = i > 0 and self._begins[token] and self._ends[ids[i - 1]]
            glued = i == 0 or self._continues[token] or dense
            parts.append(self._spellings[token] if glued else " " + self._spellings[token])
        return "".join(parts)

    def join_tensor(self, ids):
        """Joins dense or ragged int `[B, T]` to string `[B]`, inside a graph."""
        import tensorflow as tf

        if not isinstance(ids, tf.RaggedTensor):
            ids = tf.RaggedTensor.from_tensor(ids)
        tokens, rows = ids.flat_values, ids.value_rowids()
        first = (tf.range(tf.size(rows)) == 0) | (rows != tf.roll(rows, 1, 0))
        after_dense = tf.roll(tf.gather(tf.constant(self._ends), tokens), 1, 0)
        dense = tf.gather(tf.constant(self._begins), tokens) & after_dense
        glued = first | tf.gather(tf.constant(self._continues), tokens) | dense
        spellings = tf.gather(tf.constant(self._spellings), tokens)
        parts = tf.where(glued, spellings, tf.strings.join([" ", spellings]))
        return tf.strings.reduce_join(ids.with_flat_values(parts), axis=-1)
