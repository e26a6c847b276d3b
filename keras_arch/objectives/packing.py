"""Packing documents into rows of one length."""

from typing import Any, NamedTuple

import numpy as np

from keras_arch.checks import check_positive


class Packed(NamedTuple):
    """Packed rows; numpy arrays `[rows, length]`.

    Attributes:
        token_ids: int32; pads are 0.
        valid: bool, True = token or separator.
        segment_ids: int32, the number of the document in its row, from 0.
    """

    token_ids: Any
    valid: Any
    segment_ids: Any


def pack(documents, length, separator_id=None):
    """Lays documents end to end in rows of `length` tokens.

    A document that does not fit goes on in the next row, as a segment of its own. Give
    `segment_ids` to a model built with `packed=True` and positions restart with each document and
    attention stays inside it; leave them out and a row is one running text.

    Args:
        documents: Iterable of lists of token ids.
        length: Tokens in a row.
        separator_id: Optional id that ends each document.

    Returns:
        `Packed`; only the last row has pads, on its right.

    Raises:
        ValueError: If `length` is not positive or an id is negative.
    """
    check_positive(length=length)
    token_ids, document_ids = [], []
    for i, document in enumerate(documents):
        ids = [*document] if separator_id is None else [*document, separator_id]
        wrong = [t for t in ids if not isinstance(t, int | np.integer) or not 0 <= t < 2**31]
        if wrong:
            raise ValueError(
                f"token ids must be integers in [0, 2^31); received {wrong[0]!r} in document {i}."
            )
        token_ids += ids
        document_ids += [i] * len(ids)
    rows = -(-len(token_ids) // length)
    spare = rows * length - len(token_ids)
    shape = (rows, length)
    token_ids = np.array(token_ids + [0] * spare, "int32").reshape(shape)
    # Pads go on with the last document, so that they add no segment.
    document_ids = np.array(document_ids + document_ids[-1:] * spare, "int32").reshape(shape)
    valid = (np.arange(rows * length) < rows * length - spare).reshape(shape)
    first = np.zeros_like(document_ids)
    first[:, 1:] = document_ids[:, 1:] != document_ids[:, :-1]
    return Packed(token_ids, valid, np.cumsum(first, axis=1, dtype="int32"))
