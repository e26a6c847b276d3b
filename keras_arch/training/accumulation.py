"""Gradient accumulation that equals one large batch, also with unequal token counts."""

from keras_arch.objectives.crossentropy import IGNORED


def micro_batches(dataset, count):
    """Cuts each batch into `count` micro-batches whose mean gradient is the batch's gradient.

    A mean of the micro-batches' mean losses would favour the tokens of short rows. So the weights
    of the whole batch are divided by its token total and multiplied by `count`, and each
    micro-batch's loss is the plain *sum* of weight times token loss: Keras averages `count`
    gradients, which gives sum / tokens of the large batch exactly.

    Train with `TokenCrossentropy(reduction="sum")` and an optimizer with
    `gradient_accumulation_steps=count`. A batch without tokens has weights 0. Labels of -1,
    which the loss ignores, are no tokens.

    Args:
        dataset: tf.data.Dataset of (inputs, targets [B, T], weights [B, T]).
        count: micro-batches per batch; divides B.

    Returns:
        Dataset of the same structure with B / count rows, weights float32.

    Raises:
        ValueError: `count` is not positive, or B not a multiple of `count`. Where B is only known
            when a batch comes, TensorFlow says so then.
    """
    import tensorflow as tf

    if count < 1:
        raise ValueError(f"micro_batches must be positive; received {count}.")
    batch_size = dataset.element_spec[2].shape[0]
    if batch_size is not None and batch_size % count:
        raise ValueError(
            "the batch size must be a multiple of micro_batches; received "
            f"batch_size={batch_size}, micro_batches={count}."
        )

    def split(tensor):
        return tf.stack(tf.split(tensor, count))

    def split_batch(inputs, targets, weights):
        weights = real_weights(targets, weights)
        weights = tf.math.divide_no_nan(weights * count, tf.reduce_sum(weights))
        return tf.nest.map_structure(split, (inputs, targets, weights))

    return dataset.map(split_batch).unbatch()


def average_weights(dataset):
    """Scales evaluation weights so that a sum over a batch is, on average, a mean over tokens.

    For evaluating a model that was compiled with `TokenCrossentropy(reduction="sum")`: the mean
    of the batches' losses is then the sum of the token losses over all tokens, exactly. Weighted
    means over tokens, such as `TokenNats`, are not changed by a common factor.

    Args:
        dataset: finite tf.data.Dataset of (inputs, targets, weights); it is read once.
    """
    import tensorflow as tf

    batches, tokens = 0, 0.0
    for _, targets, weights in dataset:
        batches += 1
        tokens += float(tf.reduce_sum(real_weights(targets, weights)))
    scale = batches / tokens if tokens else 0.0
    return dataset.map(lambda x, y, weights: (x, y, real_weights(y, weights) * scale))


def real_weights(targets, weights):
    """Returns the weights as float32, 0 where the label is ignored."""
    import tensorflow as tf

    return tf.where(targets == IGNORED, 0.0, tf.cast(weights, tf.float32))
