"""From texts to an encoder's rows, inside a TensorFlow graph."""

import dataclasses

import tensorflow as tf

from keras_arch.serving.rows import longest


@dataclasses.dataclass(frozen=True)
class RowLayout:
    """How texts are laid between special tokens: `[CLS] a [SEP]`, `[CLS] a [SEP] b [SEP]`.

    What `keras_arch.objectives.pack_texts` does, inside a graph.

    Attributes:
        first_id: Id of a row's first token.
        separator_id: Id of what ends each text.
        between: Separators between two texts.
        context_length: Most tokens of a row; None: no limit.
    """

    first_id: int
    separator_id: int
    between: int
    context_length: int | None

    def cut(self, rows):
        """Returns ragged rows `[B, None]` of single texts, without the end that has no room."""
        return rows if self.context_length is None else rows[:, : self.context_length - 2]

    def cut_question(self, rows):
        """Returns ragged rows of questions, at most half of the context of each."""
        return rows if self.context_length is None else rows[:, : self.context_length // 2]

    def before(self, questions):
        """Returns how many tokens stand before the text after a question, int32 `[B]`."""
        return tf.cast(questions.row_lengths(), tf.int32) + 1 + self.between

    def room_after(self, questions, sizes):
        """Returns how many of a text's `sizes` tokens have room after a question, int32 `[B]`."""
        if self.context_length is None:
            return sizes
        return self.context_length - 1 - self.before(questions)

    @property
    def least_room(self):
        """What `room_after` the longest question is; None: no limit."""
        limit = self.context_length
        return None if limit is None else limit - limit // 2 - 2 - self.between

    def lay(self, firsts, seconds=None):
        """Returns `token_ids`, `valid` and `type_ids` `[B, T]`, by name.

        Args:
            firsts: Ragged int32 `[B, None]`.
            seconds: The same, or None.
        """
        row = tf.concat([_fill(firsts, self.first_id, 1), firsts, self._ends(firsts, 1)], axis=1)
        own = tf.cast(row.row_lengths(), tf.int32)
        if seconds is not None:
            between = self._ends(firsts, self.between - 1)
            row = tf.concat([row, between, seconds, self._ends(firsts, 1)], axis=1)
        lengths = tf.cast(row.row_lengths(), tf.int32)
        length = longest(lengths, at_least=2)
        token_ids = row.to_tensor(shape=[None, None])
        token_ids = tf.pad(token_ids, [[0, 0], [0, length - tf.shape(token_ids)[1]]])
        column = tf.range(length)
        valid = column < lengths[:, None]
        type_ids = tf.cast(valid & (column >= own[:, None]), tf.int32)
        return {"token_ids": token_ids, "valid": valid, "type_ids": type_ids}

    def _ends(self, rows, count):
        return _fill(rows, self.separator_id, count)


def _fill(rows, token, count):
    """Returns as many ragged rows of a token some times."""
    tokens = tf.fill([rows.nrows(), count], tf.constant(token, rows.dtype))
    return tf.RaggedTensor.from_tensor(tokens)


def softmax(logits):
    """Returns probabilities, float32 `[..., C]`."""
    return tf.nn.softmax(tf.cast(logits, tf.float32))
