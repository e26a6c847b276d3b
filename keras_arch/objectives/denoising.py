"""BART's noise: five ways to spoil a document that a model learns to restore.

Each takes a row and gives a row, so they combine: `infill_text(permute_sentences(ids, ...), ...)`.
Special tokens, pads among them where a row has any, stand outside the document: none is chosen or
moved past another, and those at the row's ends stay there.

Source: Lewis et al. 2020, section 2.2. Rates default to the 30 % of their section 5.1.
"""

import numpy as np

from keras_arch.objectives.rows import checked_row, generator, random_count
from keras_arch.objectives.spans import check_mean_length


def mask_tokens(token_ids, seed, mask_id, rate=0.3, special_ids=()):
    """Replaces random tokens by the mask.

    Args:
        token_ids: int `[T]`.
        seed: Non-negative integer or `numpy.random.Generator`.
        mask_id: The mask's id. Masks that stand in the row already stay.
        rate: Share of the tokens that are masked. Where that is no whole number, the next one
            below or above is taken at random, so that it holds on average for rows of any length.
        special_ids: Ids that are left alone: pads, begin, end.

    Returns:
        int32 `[T]`.

    Raises:
        ValueError: If an argument is out of range.
    """
    ids, places, random = _document(token_ids, seed, special_ids, [mask_id])
    ids[random.choice(places, random_count(len(places), rate, random), replace=False)] = mask_id
    return ids


def delete_tokens(token_ids, seed, rate=0.3, special_ids=()):
    """Deletes random tokens, but never all: a model has to find out where some are missing.

    Args:
        token_ids: int `[T]`.
        seed: Non-negative integer or `numpy.random.Generator`.
        rate: As in `mask_tokens`.
        special_ids: Ids that are left alone: pads, begin, end.

    Returns:
        int32 ids.

    Raises:
        ValueError: If an argument is out of range.
    """
    ids, places, random = _document(token_ids, seed, special_ids)
    count = min(random_count(len(places), rate, random), max(len(places) - 1, 0))
    return np.delete(ids, random.choice(places, count, replace=False))


def infill_text(token_ids, seed, mask_id, rate=0.3, mean_length=3.0, special_ids=()):
    """Replaces each of some random spans by one mask.

    Lengths are drawn from a Poisson distribution until they cover the rate; the last one drawn is
    cut to fit. A span of length 0 inserts a mask, so a short row may grow. A span goes on behind
    special tokens within it.

    Args:
        token_ids: int `[T]`.
        seed: Non-negative integer or `numpy.random.Generator`.
        mask_id: The mask's id. Masks that stand in the row already stay.
        rate: As in `mask_tokens`.
        mean_length: Of the distribution, at least 1.
        special_ids: Ids that are left alone: pads, begin, end.

    Returns:
        int32 ids.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_mean_length(mean_length)
    ids, places, random = _document(token_ids, seed, special_ids, [mask_id])
    count = random_count(len(places), rate, random)
    lengths = _span_lengths(count, mean_length, random)
    # How many of the kept tokens stand before each span; then how many tokens do.
    kept_before = np.sort(random.integers(len(places) - count + 1, size=len(lengths)))
    begins = kept_before + np.cumsum(lengths) - lengths
    inside = np.repeat(begins, lengths) + _offsets(lengths)
    keep = np.ones(len(ids), bool)
    keep[places[inside]] = False
    # A mask before the first token of each span, or behind the document's last token.
    at = np.append(places, places[-1:] + 1)[begins]
    return np.insert(ids, at, mask_id)[np.insert(keep, at, True)]


def permute_sentences(token_ids, seed, stop_ids, special_ids=()):
    """Shuffles the sentences of a document.

    A sentence ends with a full stop, or a run of them, or with the document. The places of special
    tokens stay as they are.

    Args:
        token_ids: int `[T]`.
        seed: Non-negative integer or `numpy.random.Generator`.
        stop_ids: Ids of full stops, at least one.
        special_ids: Ids that are left alone: pads, begin, end.

    Returns:
        int32 `[T]`.

    Raises:
        ValueError: If an argument is out of range.
    """
    stops = checked_row(stop_ids=stop_ids, least=1)
    ids, places, random = _document(token_ids, seed, special_ids)
    is_stop = np.isin(ids[places], stops)
    ends = np.flatnonzero(is_stop[:-1] & ~is_stop[1:]) + 1
    sentences = np.split(ids[places], ends)
    ids[places] = np.concatenate([sentences[i] for i in random.permutation(len(sentences))])
    return ids


def rotate_document(token_ids, seed, special_ids=()):
    """Rotates a document so that it begins with a random one of its tokens.

    The places of special tokens stay as they are.

    Args:
        token_ids: int `[T]`.
        seed: Non-negative integer or `numpy.random.Generator`.
        special_ids: Ids that are left alone: pads, begin, end.

    Returns:
        int32 `[T]`.

    Raises:
        ValueError: If an argument is out of range.
    """
    ids, places, random = _document(token_ids, seed, special_ids)
    ids[places] = np.roll(ids[places], -random.integers(max(len(places), 1)))
    return ids


def _document(token_ids, seed, special_ids, mask_ids=()):
    """Returns a copy of the row, the positions of the document's tokens, and a generator."""
    ids = checked_row(token_ids=token_ids)
    outside = [checked_row(special_ids=special_ids), checked_row(mask_id=mask_ids)]
    return ids, np.flatnonzero(~np.isin(ids, np.concatenate(outside))), generator(seed)


def _span_lengths(total, mean_length, random):
    """Returns lengths that add up to `total` in random order, int `[spans]`."""
    lengths = []
    while total:
        lengths.append(min(random.poisson(mean_length), total))
        total -= lengths[-1]
    # The cut one must not always be the last of the row.
    return random.permutation(np.array(lengths, int))


def _offsets(lengths):
    """Returns 0, 1, ... anew for each length, int `[sum(lengths)]`."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
