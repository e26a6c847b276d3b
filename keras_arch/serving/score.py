"""The log-likelihood of texts, inside a TensorFlow graph."""

import tensorflow as tf

from keras_arch.generation.score import next_log_probabilities
from keras_arch.serving.rows import longest


def log_likelihoods(stepper, rows, stride, context):
    """Returns the sum of the log-probabilities of each row's tokens but the first, float32 `[B]`.

    The windows are those of `keras_arch.generation.score.windows`; the model reads one of each row
    at a time.

    Args:
        stepper: The model's `Stepper`.
        rows: Ragged int32 `[B, None]`.
        stride: Tokens that a window goes on.
        context: Dict of tensors for the context inputs.
    """
    lengths = tf.cast(rows.row_lengths(), tf.int32)
    length = longest(lengths, at_least=2)
    token_ids = rows.to_tensor(shape=[None, None])
    token_ids = tf.pad(token_ids, [[0, 0], [0, length - tf.shape(token_ids)[1]]])
    slots = tf.minimum(length, stepper.context_length or length)
    slots = tf.maximum(slots, 2)

    def running(end, first, totals):
        return end < length + stride

    def body(end, first, totals):
        ends = tf.minimum(lengths, end)
        places = tf.maximum(ends - slots, 0)[:, None] + tf.range(slots)
        window = tf.gather(token_ids, tf.minimum(places, length - 1), batch_dims=1)
        found = next_log_probabilities(stepper, window, places < lengths[:, None], context)
        scored = (places >= first[:, None]) & (places < ends[:, None])
        totals += tf.reduce_sum(tf.where(scored[:, 1:], found, 0.0), axis=1)
        return end + stride, tf.maximum(ends, 1), totals

    start = (slots, tf.ones_like(lengths), tf.zeros_like(lengths, tf.float32))
    return tf.while_loop(running, body, start)[2]
