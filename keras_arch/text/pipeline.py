"""`tf.data` pipelines from token ids and text files to batches for `fit`.

Every pipeline yields `(inputs, targets, weights)` as `keras_arch.objectives.next_token` makes
them: inputs `{"token_ids": int32 [B, T], "valid": bool [B, T]}`, targets int32 `[B, T]`, weights
bool `[B, T]`. The same dataset feeds Keras on TensorFlow, JAX and PyTorch.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from keras_arch.checks import check_count, check_positive
from keras_arch.objectives.next_token import next_token
from keras_arch.text.arguments import checked_ids
from keras_arch.text.files import read_blocks
from keras_arch.text.tokenizer import Tokenizer


def split(ids: np.ndarray, validation_fraction: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Splits a text into its beginning, to train on, and its end, to validate on.

    Args:
        ids: int `[n]`; views of it are returned.
        validation_fraction: Share of the ids in the second part, between 0 and 1.

    Returns:
        `(train, validation)`.

    Raises:
        ValueError: If the fraction is out of range or leaves a part empty.
    """
    if not 0 < validation_fraction < 1:
        raise ValueError(
            "validation_fraction must lie between 0 and 1; "
            f"received validation_fraction={validation_fraction}."
        )
    cut = int(len(ids) * (1 - validation_fraction))
    if cut == 0 or cut == len(ids):
        raise ValueError(
            f"ids are too few to split: {len(ids)} with validation_fraction={validation_fraction}."
        )
    return ids[:cut], ids[cut:]


def windows(
    ids: np.ndarray,
    context: int,
    batch_size: int,
    seed: int,
    start_step: int = 0,
    vocabulary_size: int | None = None,
) -> tf.data.Dataset:
    """Random windows of one long text, without end.

    The batch of step i depends on `seed` and i alone, so a run continues at any step by
    `start_step`, at no cost.

    Args:
        ids: int `[n]`, n > context; an array, a list or a `numpy.memmap`, which stays on disk.
        context: T, tokens per window.
        batch_size: B, windows per batch.
        seed: Non-negative integer.
        start_step: The step whose batch comes first.
        vocabulary_size: V; when given, ids are checked to lie below it.

    Returns:
        An infinite dataset of batches whose tokens are all valid.

    Raises:
        ValueError: If an argument is out of range, or an id is.
    """
    check_positive(context=context, batch_size=batch_size)
    check_count(seed=seed, start_step=start_step)
    ids = checked_ids(ids, vocabulary_size)
    if len(ids) <= context:
        raise ValueError(
            f"context must be below the number of ids, {len(ids)}; received context={context}."
        )
    offsets = np.arange(context + 1)

    def rows() -> Iterator[np.ndarray]:
        for step in itertools.count(start_step):
            generator = np.random.default_rng([seed, step])
            starts = generator.integers(len(ids) - context, size=batch_size)
            yield ids[starts[:, None] + offsets].astype(np.int32)

    spec = tf.TensorSpec([batch_size, context + 1], tf.int32)
    dataset = tf.data.Dataset.from_generator(rows, output_signature=spec)
    return finish(dataset.map(_all_valid))


def consecutive_windows(
    ids: np.ndarray, context: int, batch_size: int, vocabulary_size: int | None = None
) -> tf.data.Dataset:
    """The windows of a whole text, side by side: each token but the first is a target once.

    The last window is padded on the right and the last batch with empty rows, ids 0 and invalid,
    so that all batches have one shape.

    Args:
        ids: int `[n]`, n > 1; an array, a list or a `numpy.memmap`.
        context: T, tokens per window.
        batch_size: B, windows per batch.
        vocabulary_size: V; when given, ids are checked to lie below it.

    Returns:
        A dataset of `ceil(ceil((n - 1) / T) / B)` batches; its length is known.

    Raises:
        ValueError: If an argument is out of range, or an id is.
    """
    check_positive(context=context, batch_size=batch_size)
    ids = checked_ids(ids, vocabulary_size)
    step = context * batch_size
    batches = -(-(len(ids) - 1) // step)
    # A row begins at the token that the row before has as its last target.
    positions = np.arange(batch_size)[:, None] * context + np.arange(context + 1)

    def rows() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, batches * step, step):
            index = start + positions
            valid = index < len(ids)
            # A row whose first token is the last of the text has no target.
            valid &= index[:, :1] < len(ids) - 1
            tokens = np.where(valid, ids[np.minimum(index, len(ids) - 1)], 0)
            yield tokens.astype(np.int32), valid

    shape = [batch_size, context + 1]
    spec = (tf.TensorSpec(shape, tf.int32), tf.TensorSpec(shape, tf.bool))
    dataset = tf.data.Dataset.from_generator(rows, output_signature=spec)
    cardinality = tf.data.experimental.assert_cardinality(batches)
    return finish(dataset.apply(cardinality).map(next_token))


def stream(
    files: Sequence[str | os.PathLike],
    tokenizer: Tokenizer,
    context: int,
    batch_size: int,
    seed: int,
    start_step: int = 0,
    buffer_rows: int = 1024,
) -> tf.data.Dataset:
    """Rows packed from text files that need not fit into memory, without end.

    A file is a document. Each epoch reads all files in a new random order, a block of lines at a
    time (so no token crosses the blocks' borders, about one in 64 KiB), ends each with the
    tokenizer's end token where it has one, and cuts the tokens into rows of T + 1 without gaps.
    Rows are shuffled within groups of `buffer_rows`.

    The batches depend on the arguments alone. `start_step` gives exactly those that would have
    come from there on, but reads and tokenizes what it skips.

    Args:
        files: UTF-8 text files, as `find_corpus` returns them.
        tokenizer: Encodes the text.
        context: T, tokens per row.
        batch_size: B, rows per batch.
        seed: Non-negative integer.
        start_step: The step whose batch comes first.
        buffer_rows: Rows in memory among which to shuffle; 1 keeps their order.

    Returns:
        An infinite dataset of batches whose tokens are all valid. Reading a file that is not
        UTF-8 ends it with an error that names the file and the offset.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If an argument is out of range, or all files are empty.
    """
    check_positive(context=context, batch_size=batch_size, buffer_rows=buffer_rows)
    check_count(seed=seed, start_step=start_step)
    if isinstance(files, (str, os.PathLike)):
        raise ValueError(f"files must be a list of paths; received {files!r}.")
    files = [os.fspath(path) for path in files]
    if not sum(os.path.getsize(path) for path in files):
        raise ValueError(f"files must hold some text; received {files}.")

    def tokens() -> Iterator[np.ndarray]:
        for epoch in itertools.count():
            for index in np.random.default_rng([seed, epoch]).permutation(len(files)):
                yield from _document(files[index], tokenizer)

    def shuffle(group, rows):
        return tf.random.experimental.stateless_shuffle(rows, seed=[seed, group])

    spec = tf.TensorSpec([None], tf.int32)
    dataset = tf.data.Dataset.from_generator(tokens, output_signature=spec)
    dataset = dataset.rebatch(context + 1).batch(buffer_rows).enumerate().map(shuffle)
    dataset = dataset.rebatch(batch_size).map(
        lambda rows: _all_valid(tf.ensure_shape(rows, [batch_size, context + 1]))
    )
    return finish(dataset.skip(start_step))


def _document(path: str, tokenizer: Tokenizer) -> Iterator[np.ndarray]:
    for block in read_blocks(path):
        yield np.asarray(tokenizer.encode(block), np.int32)
    if "end" in tokenizer.special_ids:
        yield np.asarray([tokenizer.special_ids["end"]], np.int32)


def _all_valid(rows: tf.Tensor):
    return next_token(rows, tf.ones_like(rows, tf.bool))


def finish(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Gives a dataset the options that every one here has."""
    options = tf.data.Options()
    # `fit` on TensorFlow may return up to 20 s after its last step, waiting for the autotuner.
    options.autotune.enabled = False
    options.deterministic = True
    return dataset.prefetch(2).with_options(options)
