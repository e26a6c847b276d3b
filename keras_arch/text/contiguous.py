"""A text as rows that go on from batch to batch, for models that carry their state."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from keras_arch.checks import check_count, check_positive
from keras_arch.objectives.next_token import next_token
from keras_arch.text.arguments import checked_ids
from keras_arch.text.pipeline import finish


def contiguous_rows(
    ids: np.ndarray,
    context: int,
    batch_size: int,
    start_step: int = 0,
    epochs: int | None = None,
    vocabulary_size: int | None = None,
) -> tf.data.Dataset:
    """A text as B streams side by side: each row goes on where that of the batch before ended.

    What `keras_arch.generation.stateful` trains and evaluates on: inputs hold also `fresh`, bool
    `[B]`, True in the first batch of an epoch. In an epoch each token but the text's first is a
    target once; a stream's last rows may be padded on the right.

    Args:
        ids: int `[n]`, n > B; an array, a list or a `numpy.memmap`, which stays on disk.
        context: T, tokens per row.
        batch_size: B, streams.
        start_step: The step whose batch comes first.
        epochs: Times to read the text; None: without end.
        vocabulary_size: V; when given, ids are checked to lie below it.

    Returns:
        A dataset of `ceil(ceil((n - 1) / B) / T)` batches for each epoch.

    Raises:
        ValueError: If an argument is out of range, or an id is.
    """
    check_positive(context=context, batch_size=batch_size)
    check_count(start_step=start_step)
    ids = checked_ids(ids, vocabulary_size)
    if len(ids) <= batch_size:
        raise ValueError(
            f"batch_size must be below the number of ids, {len(ids)}; received "
            f"batch_size={batch_size}."
        )
    targets = -(-(len(ids) - 1) // batch_size)  # of a stream
    batches = -(-targets // context)
    begins = np.arange(batch_size)[:, None] * targets
    ends = np.minimum(begins + targets, len(ids) - 1)

    def rows() -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        steps = itertools.count() if epochs is None else range(epochs * batches)
        for step in itertools.islice(steps, start_step, None):
            index = begins + step % batches * context + np.arange(context + 1)
            valid = index <= ends
            # A row whose first token is the last of the stream has no target.
            valid &= index[:, :1] < ends
            tokens = np.where(valid, ids[np.minimum(index, len(ids) - 1)], 0)
            yield tokens.astype(np.int32), valid, np.full(batch_size, step % batches == 0)

    def split_rows(tokens, valid, fresh):
        inputs, targets, weights = next_token(tokens, valid)
        return inputs | {"fresh": fresh}, targets, weights

    shape = [batch_size, context + 1]
    specs = (
        tf.TensorSpec(shape, tf.int32),
        tf.TensorSpec(shape, tf.bool),
        tf.TensorSpec([batch_size], tf.bool),
    )
    dataset = tf.data.Dataset.from_generator(rows, output_signature=specs)
    if epochs is not None:
        left = max(epochs * batches - start_step, 0)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(left))
    return finish(dataset.map(split_rows))
