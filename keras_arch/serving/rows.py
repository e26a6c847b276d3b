"""Ragged rows of token ids, inside a TensorFlow graph."""

import tensorflow as tf


def start_empty(rows, text, bos_id):
    """Returns ragged rows, those without a token starting from `bos_id`.

    Args:
        rows: Ragged int32 `[B, None]`.
        text: string `[B]`, shown where an empty row is an error.
        bos_id: Token id; None makes an empty row an error.
    """
    empty = rows.row_lengths() == 0
    if bos_id is None:
        message = "an empty text has no token to start from; give export a bos_id"
        with tf.control_dependencies([tf.debugging.Assert(~tf.reduce_any(empty), [message, text])]):
            return tf.identity(rows)
    starts = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.math.count_nonzero(empty)], tf.constant(bos_id, rows.dtype)),
        tf.cast(empty, tf.int64),
    )
    return tf.concat([starts, rows], axis=1)


def start_all(rows, bos_id):
    """Returns ragged int32 rows, each with `bos_id` before it; or as they are, if that is None."""
    if bos_id is None:
        return rows
    starts = tf.fill([rows.nrows(), 1], tf.constant(bos_id, rows.dtype))
    return tf.concat([tf.RaggedTensor.from_tensor(starts), rows], axis=1)


def pad_left(rows):
    """Returns `(token_ids, valid)` `[B, P]` with the tokens on the right, and one pad or more."""
    lengths = tf.cast(rows.row_lengths(), tf.int32)
    slots = longest(lengths, at_least=1) + 1
    source = tf.range(slots)[None, :] - (slots - lengths[:, None])
    dense = rows.to_tensor()
    token_ids = tf.gather(dense, tf.maximum(source, 0), batch_dims=1)
    return tf.where(source >= 0, token_ids, 0), source >= 0


def longest(lengths, at_least):
    """Returns the greatest of int32 lengths `[B]`, which may be none, and of `at_least`."""
    return tf.reduce_max(tf.concat([lengths, [at_least]], axis=0))


def check(ok, *words):
    """Returns an operation that fails with words (strings and tensors) unless `ok`, a bool scalar.

    It must run before what it protects: use it as a control dependency.
    """
    return tf.debugging.Assert(ok, list(words), summarize=8)


def check_ids(name, token_ids, valid, vocabulary_size):
    """Returns operations that fail for ids outside the vocabulary, or unlike their validity.

    Args:
        name: Of the ids.
        token_ids: int32 `[B, T]`.
        valid: bool `[B, T]`.
        vocabulary_size: Of the tokenizer.
    """
    shapes = tf.shape(token_ids), tf.shape(valid)
    words = f"{name} and their validity must have one shape; received the shapes"
    wrong = (token_ids < 0) | (token_ids >= vocabulary_size)
    range_words = f"{name} must be from 0 to {vocabulary_size - 1}; received"
    return [
        check(tf.reduce_all(shapes[0] == shapes[1]), words, *shapes),
        check(~tf.reduce_any(wrong), range_words, token_ids[wrong]),
    ]
