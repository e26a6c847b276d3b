"""T5's span corruption: spans drop out of the input, and the target is what dropped out."""

import numpy as np

from keras_arch.checks import check_positive
from keras_arch.objectives.rows import checked_row
from keras_arch.objectives.spans import random_spans


def span_corruption(
    token_ids, seed, sentinel_ids, rate=0.15, mean_length=3.0, vocabulary_size=None
):
    """Corrupts random spans of a row: `random_spans`, then `corrupt_spans`.

    Returns:
        `(inputs, targets)`: int32 ids, as long as `span_counts` says.

    Raises:
        ValueError: As those two.

    Source: Raffel et al. 2020, section 3.1.4.
    """
    ids = checked_row(token_ids=token_ids, least=2, vocabulary_size=vocabulary_size)
    noise = random_spans(len(ids), seed, rate, mean_length)
    return corrupt_spans(ids, noise, sentinel_ids, vocabulary_size)


def corrupt_spans(token_ids, noise, sentinel_ids, vocabulary_size=None):
    """Replaces each span of noise by a sentinel; the target lists the spans.

    ```
    text     Thank you for inviting me to your party last week .
    noise               --- --------                 ----
    inputs   Thank you <X> me to your party <Y> week .
    targets  <X> for inviting <Y> last <Z>
    ```

    The final sentinel always ends the target, as the paper has it; T5's code leaves it out where a
    row ends with noise. The end of a row is not added.

    Args:
        token_ids: int `[T]`, a row without pads and special tokens.
        noise: bool `[T]`, True = noise; each run of it is a span.
        sentinel_ids: The sentinels in the order of their use, see `descending_sentinels`; at least
            one more than there are spans.
        vocabulary_size: V; when given, ids are checked to lie below it.

    Returns:
        `(inputs, targets)`: int32 ids.

    Raises:
        ValueError: If the noise has another shape, ids are out of range, a sentinel occurs twice
            or in the row, or the sentinels are too few.

    Source: Raffel et al. 2020, section 3.1.4 and figure 2.
    """
    ids = checked_row(token_ids=token_ids, vocabulary_size=vocabulary_size)
    noise = np.asarray(noise)
    if noise.shape != ids.shape or noise.dtype != bool:
        raise ValueError(
            f"noise must be bool of shape {ids.shape}, as token_ids; received shape {noise.shape}, "
            f"dtype {noise.dtype}."
        )
    first = noise & ~np.concatenate([[False], noise[:-1]])
    sentinels = _checked_sentinels(sentinel_ids, ids, first.sum() + 1, vocabulary_size)
    spans = np.cumsum(first)
    inputs = np.where(first, sentinels[spans - 1], ids)[first | ~noise]
    # A sentinel goes before the first token of its span, the final one to the end.
    begins = np.flatnonzero(np.append(first[noise], True))
    return inputs, np.insert(ids[noise], begins, sentinels[: len(begins)])


def fill_spans(inputs, targets, sentinel_ids):
    """Puts the spans that a target lists into the places of their sentinels.

    Undoes `corrupt_spans`, and reads what a model wrote, which may be any ids: a span goes on to
    the next sentinel, a sentinel that comes again is passed over, and one without a span in the
    target stays in the row.

    Args:
        inputs: int `[S]`, a corrupted row.
        targets: int `[T]`, spans, each after its sentinel.
        sentinel_ids: The sentinels.

    Returns:
        int32 ids.

    Raises:
        ValueError: If ids are out of range.
    """
    ids, written = checked_row(inputs=inputs), checked_row(targets=targets)
    sentinels = checked_row(sentinel_ids=sentinel_ids)
    begins = np.flatnonzero(np.isin(written, sentinels))
    spans = {}
    for part in np.split(written, begins)[1:]:
        spans.setdefault(int(part[0]), part[1:])
    parts = [spans.get(int(token), token[None]) for token in ids]
    return np.concatenate([ids[:0], *parts])


def descending_sentinels(vocabulary_size, count=100):
    """Returns the last ids of a vocabulary from the top down, int32 `[count]`, as T5 uses them.

    Args:
        vocabulary_size: V, the tokenizer's with its sentinels: 32,100 for T5, whose table of
            32,128 rows is padded.
        count: Sentinels of the vocabulary.

    Raises:
        ValueError: If an argument is not positive or the vocabulary is too small.
    """
    check_positive(vocabulary_size=vocabulary_size, count=count)
    if count > vocabulary_size:
        raise ValueError(
            f"count must be at most vocabulary_size={vocabulary_size}; received count={count}."
        )
    return np.arange(vocabulary_size - 1, vocabulary_size - 1 - count, -1, dtype="int32")


def _checked_sentinels(sentinel_ids, ids, needed, vocabulary_size):
    sentinels = checked_row(sentinel_ids=sentinel_ids, vocabulary_size=vocabulary_size)
    if len(sentinels) < needed:
        raise ValueError(
            f"sentinel_ids must hold at least {needed} ids, one more than the spans; received "
            f"{len(sentinels)}."
        )
    values, counts = np.unique(sentinels, return_counts=True)
    if counts.max() > 1:
        raise ValueError(f"sentinel_ids must differ; received {values[counts.argmax()]} twice.")
    clashes = np.flatnonzero(np.isin(ids, sentinels))
    if len(clashes):
        raise ValueError(
            f"token_ids must not hold a sentinel; received {ids[clashes[0]]} at position "
            f"{clashes[0]}."
        )
    return sentinels
