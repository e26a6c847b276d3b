"""Where the tokens of a text stand in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import tensorflow as tf


class Places(NamedTuple):
    """The tokens of a text, and where each stands: lists, or ragged int32 `[B, None]` of a batch.

    A token that is a part of a character alone stands where the character stands.

    Attributes:
        token_ids: Ids, as `encode` gives them.
        starts: The token's first character, counted in code points.
        ends: The one after its last.
        words: The number of its word, from 0 on; words as the tokenizer parts them.
    """

    token_ids: list[int] | tf.RaggedTensor
    starts: list[int] | tf.RaggedTensor
    ends: list[int] | tf.RaggedTensor
    words: list[int] | tf.RaggedTensor


def columns(rows: tf.RaggedTensor) -> tf.Tensor:
    """Returns the column of each value of ragged rows, int32 `[n]`, inside a graph."""
    import tensorflow as tf

    starts = tf.cast(tf.gather(rows.row_starts(), rows.value_rowids()), tf.int32)
    return tf.range(tf.size(starts)) - starts


def ragged_places(tokens: tf.RaggedTensor, starts: tf.Tensor, ends: tf.Tensor) -> Places:
    """Returns the `Places` of a batch, inside a graph.

    Args:
        tokens: Ragged int32 `[B, None, None]`: of each text, of each word the ids of its tokens.
        starts: int32 `[n]`, of all tokens.
        ends: int32 `[n]`.
    """
    import tensorflow as tf

    token_ids = tokens.merge_dims(1, 2)
    words = tf.gather(columns(tokens), tokens.values.value_rowids())
    return Places(token_ids, *(token_ids.with_flat_values(x) for x in (starts, ends, words)))
