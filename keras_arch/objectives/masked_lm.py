"""BERT's masked tokens: some tokens of a row are hidden, swapped or kept, and are to be told."""

import numpy as np

from keras_arch.checks import check_fraction
from keras_arch.objectives.crossentropy import IGNORED
from keras_arch.objectives.rows import checked_row, checked_rows, generator, random_count


def mask_for_mlm(
    token_ids,
    valid,
    seed,
    mask_id,
    vocabulary_size,
    special_ids=(),
    rate=0.15,
    mask_share=0.8,
    random_share=0.1,
    continuation_ids=(),
):
    """Chooses tokens to be told, and spoils them: makes inputs, targets and weights of rows.

    Of the chosen tokens 80 % become the mask, 10 % a random token, and 10 % stay. Called anew with
    other seeds, it masks the same text otherwise each time (Liu et al. 2019, section 4.1).

    Args:
        token_ids: int `[B, T]`.
        valid: bool `[B, T]`, True = real token.
        seed: Non-negative integer or `numpy.random.Generator`.
        mask_id: The mask's id.
        vocabulary_size: V; random tokens are any but special ones.
        special_ids: Ids that are never chosen and never put in: begin, separator, pad. Nor is the
            mask.
        rate: Share of a row's tokens that are chosen, at most, rounded up or down at random.
        mask_share: Share of the chosen tokens that become the mask.
        random_share: Share of them that become a random token.
        continuation_ids: Ids that go on with the word before them, as WordPiece's `##...`; where
            given, words are chosen or left as a whole.

    Returns:
        `(inputs, targets, weights)`: a dict with `token_ids` int32 `[B, T]`, `valid` `[B, T]` and
        `masked_positions` int32 `[B, M]`, columns of the chosen tokens in order; their ids int32
        `[B, M]`; bool `[B, M]`. M is `floor(T * rate) + 1`, of which a row may need fewer: the rest
        has position 0, target -1 and weight False.

    Raises:
        ValueError: If an argument is out of range.

    Source: Devlin et al. 2019, section 3.1 and appendix A.1.
    """
    ids, valid = checked_rows(token_ids, valid, vocabulary_size)
    check_fraction(rate=rate)
    _check_shares(mask_share, random_share)
    limited = {"vocabulary_size": vocabulary_size}
    special = checked_row(special_ids=special_ids, **limited)
    special = np.append(special, checked_row(mask_id=[mask_id], **limited))
    follows = np.isin(ids, checked_row(continuation_ids=continuation_ids, **limited))
    ordinary = np.setdiff1d(np.arange(vocabulary_size), special)
    open_places = valid & ~np.isin(ids, special)
    random = generator(seed)
    shape = len(ids), int(ids.shape[1] * rate) + 1
    positions, targets = np.zeros(shape, "int32"), np.full(shape, IGNORED, "int32")
    for i, row in enumerate(ids):
        places = np.flatnonzero(open_places[i])
        count = random_count(len(places), rate, random)
        chosen = places[_choose(_words(places, follows[i]), count, random)]
        positions[i, : len(chosen)] = chosen
        targets[i, : len(chosen)] = row[chosen]
        draws = random.random(len(chosen))
        swapped = chosen[(draws >= mask_share) & (draws < mask_share + random_share)]
        row[chosen[draws < mask_share]] = mask_id
        row[swapped] = random.choice(ordinary, len(swapped))
    inputs = {"token_ids": ids, "valid": valid, "masked_positions": positions}
    return inputs, targets, targets != IGNORED


def _words(places, follows):
    """Numbers the words of a row's tokens at some columns, int `[n]`; `follows`: bool `[T]`."""
    goes_on = np.zeros(len(places), bool)
    goes_on[1:] = follows[places[1:]] & (np.diff(places) == 1)
    return np.cumsum(~goes_on) - 1


def _choose(words, count, random):
    """Returns which tokens, bool `[n]`, are in random words, of `count` tokens at most."""
    lengths, chosen = np.bincount(words), []
    for word in random.permutation(len(lengths)):
        if not count:
            break
        if lengths[word] <= count:
            chosen.append(word)
            count -= lengths[word]
    return np.isin(words, chosen)


def _check_shares(mask_share, random_share):
    if not (mask_share >= 0 and random_share >= 0 and mask_share + random_share <= 1):
        raise ValueError(
            "mask_share and random_share must be 0 or more and at most 1 together; received "
            f"mask_share={mask_share}, random_share={random_share}."
        )
