"""The tokens that may come next, as filters hand them on."""

from typing import Any, NamedTuple

from keras import ops

from keras_arch.backend import top_places


class Past(NamedTuple):
    """What a filter may know besides the logits.

    Attributes:
        steps: int32 scalar or `[B]`, tokens generated so far.
        stop_ids: int32 `[any]`, the ids that end a row.
        token_ids: int32 `[B, L]`, the prompt and what was generated; None if no filter reads it.
        valid: bool `[B, L]`, True = a token so far. Pads stand before a row's first token or after
            its last, never between.
    """

    steps: Any
    stop_ids: Any
    token_ids: Any = None
    valid: Any = None


class Candidates(NamedTuple):
    """Scored tokens: the vocabulary or a part of it; C of them.

    Attributes:
        logits: float32 `[B, C]`; minus infinity = forbidden. Each row has a finite one.
        vocabulary_size: Python int V.
        token_ids: int32 `[B, C]`; None: the whole vocabulary by id, C = V.
        descending: Python bool, whether the logits descend; of equals, lower ids come first.
    """

    logits: Any
    vocabulary_size: int
    token_ids: Any = None
    descending: bool = False

    def ids(self):
        """Returns the token ids, int32 `[B, C]`, or `[1, C]` where all rows have the same."""
        if self.token_ids is None:
            return ops.arange(self.vocabulary_size, dtype="int32")[None]
        return self.token_ids

    def probabilities(self):
        """Returns the softmax of the logits, float32 `[B, C]`."""
        # Keras' own warns where C is 1.
        weights = ops.exp(self.logits - ops.max(self.logits, axis=-1, keepdims=True))
        return weights / ops.sum(weights, axis=-1, keepdims=True)

    def pick(self, x):
        """Returns the candidates' entries of `x` `[B, V]`, `[B, C]`."""
        return x if self.token_ids is None else ops.take_along_axis(x, self.token_ids, axis=-1)

    def spread(self, x):
        """Returns the candidates' values `x` `[B, C]` at their ids, `[B, V]`, with 0 elsewhere."""
        return x if self.token_ids is None else put(self.token_ids, x, self.vocabulary_size)

    def sort(self):
        """Returns them in descending order."""
        if self.descending:
            return self
        logits, token_ids = self._by_id()
        order = ops.argsort(-logits, axis=-1)
        return self._take(logits, token_ids, order)

    def top(self, k):
        """Returns the k best in descending order; of equals, those of lower id."""
        k = min(k, self.logits.shape[-1])
        if self.descending:
            return self._replace(logits=self.logits[:, :k], token_ids=self.token_ids[:, :k])
        logits, token_ids = self._by_id()
        return self._take(logits, token_ids, top_places(logits, k))

    def forbid(self, forbidden):
        """Returns them without those marked in bool `[B or 1, C]`; a row of which none would be
        left keeps all."""
        logits = ops.where(forbidden, -float("inf"), self.logits)
        some = ops.any(logits > -float("inf"), axis=-1, keepdims=True)
        return self._replace(logits=ops.where(some, logits, self.logits), descending=False)

    def _by_id(self):
        """Returns logits and ids `[B, C]` with the ids ascending."""
        if self.token_ids is None:
            return self.logits, ops.broadcast_to(self.ids(), ops.shape(self.logits))
        order = ops.argsort(self.token_ids, axis=-1)
        return [ops.take_along_axis(x, order, axis=-1) for x in (self.logits, self.token_ids)]

    def _take(self, logits, token_ids, places):
        logits, token_ids = [ops.take_along_axis(x, places, axis=-1) for x in (logits, token_ids)]
        return Candidates(logits, self.vocabulary_size, token_ids, descending=True)


def put(token_ids, values, size):
    """Returns `[B, V]` with `values` at ids, else 0.

    Args:
        token_ids: int32 `[B, C]`, at most V; those equal to V are left out.
        values: `[B, C]`; equal where ids are.
        size: Python int V.
    """
    shape = ops.shape(token_ids)
    rows = ops.broadcast_to(ops.arange(shape[0], dtype="int32")[:, None], shape)
    places = ops.reshape(ops.stack([rows, token_ids], axis=-1), (-1, 2))
    # One column more takes what is left out.
    empty = ops.zeros((shape[0], size + 1), values.dtype)
    return ops.scatter_update(empty, places, ops.reshape(values, (-1,)))[:, :size]
