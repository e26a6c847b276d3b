"""The best spans of windows, inside a TensorFlow graph."""

import tensorflow as tf


def best_spans(logits, inside, longest):
    """Returns of each window the best span's score float32, first and last column int32, `[W]`.

    Of equal spans it is the first. The score of a window without a span is the lowest float.

    Args:
        logits: float32 `[W, 2, T]`, of start and end.
        inside: bool `[W, T]`, the columns where a span may be.
        longest: Most columns of a span.
    """
    time = tf.shape(inside)[1]
    column = tf.range(time)
    size = column[None] - column[:, None]
    allowed = inside[:, :, None] & inside[:, None] & (size >= 0) & (size < longest)
    scores = tf.where(allowed, logits[:, 0, :, None] + logits[:, 1, None], tf.float32.min)
    scores = tf.reshape(scores, [tf.shape(inside)[0], time * time])
    place = tf.argmax(scores, axis=1, output_type=tf.int32)
    return tf.reduce_max(scores, axis=1), place // time, place % time


def first_greatest(scores, row, rows):
    """Returns of each row the index of its greatest score, of equal ones the first, int32 `[B]`.

    Args:
        scores: float `[W]`.
        row: int32 `[W]`, the row of each; every row has one.
        rows: int32 scalar, B.
    """
    greatest = tf.gather(tf.math.unsorted_segment_max(scores, row, rows), row)
    count = tf.size(scores)
    place = tf.where(scores == greatest, tf.range(count), count)
    return tf.math.unsorted_segment_min(place, row, rows)
