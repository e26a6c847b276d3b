"""The counted n-gram model that every neural one must beat."""

import numpy as np

from keras_arch.checks import check_positive


class KneserNey:
    """An n-gram model of counts with interpolated Kneser-Ney smoothing.

    A token's probability is its discounted count after the n - 1 tokens before it, plus what the
    discounts left over times its probability after n - 2 tokens, and so on down to `1 / V`. Below
    order n, what is counted is not how often an n-gram occurs but after how many different tokens.
    Each order's discount is `n1 / (n1 + 2 n2)`, of its n-grams counted once and twice; 0.5 where
    there are none of either.

    Source: Kneser and Ney 1995; Chen and Goodman 1999, section 2.7.

    Args:
        token_ids: int `[n]`, the text to count.
        order: n.
        vocabulary_size: V.

    Raises:
        ValueError: If the text is shorter than `order` or holds an id outside [0, V), or a size is
            not positive.
    """

    def __init__(self, token_ids, order, vocabulary_size):
        check_positive(order=order, vocabulary_size=vocabulary_size)
        self.order, self.vocabulary_size = order, vocabulary_size
        token_ids = self._checked(token_ids)
        if len(token_ids) < order:
            raise ValueError(
                f"token_ids must hold at least order={order} tokens; received {len(token_ids)}."
            )
        self._tables = []
        # Which n-gram of the order before ends at each token; one empty one at the first order.
        ends = np.zeros(len(token_ids) + 1, "int64")
        for n in range(1, order + 1):
            keys = ends[:-1] * vocabulary_size + token_ids[n - 1 :]
            table = _Table(keys, vocabulary_size)
            if n > 1:
                # Each n-gram is one more token before the (n-1)-gram that ends it.
                self._tables[-1].count_extensions(ends[1:][table.first])
            self._tables.append(table)
            ends = table.find(keys)
        for table in self._tables:
            table.finish()

    def nats(self, token_ids):
        """Returns `-ln p` of each token after those before it in the same text, float64 `[n]`."""
        token_ids = self._checked(token_ids)
        total = np.full(len(token_ids), 1.0 / self.vocabulary_size)
        before = np.zeros(len(token_ids), "int64")
        for table in self._tables:
            found = table.find(before * self.vocabulary_size + token_ids)
            found[before < 0] = -1
            total = table.interpolate(before, found, total)
            # The context of the next order is the n-gram that ends one token earlier.
            before = np.concatenate([[-1], found[:-1]])
        return -np.log(total)

    @property
    def parameters(self):
        """The number of counts kept: distinct n-grams of all orders."""
        return sum(len(table.keys) for table in self._tables)

    def _checked(self, token_ids):
        token_ids = np.asarray(token_ids)
        if token_ids.ndim != 1 or not len(token_ids) or token_ids.dtype.kind not in "iu":
            raise ValueError(
                "token_ids must be integers of shape [n], n > 0; received shape "
                f"{token_ids.shape}, dtype {token_ids.dtype}."
            )
        low, high = token_ids.min(), token_ids.max()
        if low < 0 or high >= self.vocabulary_size:
            raise ValueError(
                f"token_ids must lie in [0, {self.vocabulary_size}); received {low} to {high}."
            )
        return token_ids.astype("int64")


class _Table:
    """The n-grams of one order, each a key: its context's index times V, plus its last token."""

    def __init__(self, keys, vocabulary_size):
        self.keys, self.first, self.counts = np.unique(keys, return_index=True, return_counts=True)
        self.contexts = self.keys // vocabulary_size

    def find(self, keys):
        """Returns the index of each key, -1 for those never seen."""
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)

    def count_extensions(self, suffixes):
        """Replaces the counts by the numbers of n-grams one longer that end in each."""
        self.counts = np.bincount(suffixes, minlength=len(self.keys))

    def finish(self):
        """Sums up what `interpolate` asks for."""
        once, twice = (np.count_nonzero(self.counts == k) for k in (1, 2))
        self.discount = once / (once + 2 * twice) if once and twice else 0.5
        size = self.contexts[-1] + 1
        self.totals = np.bincount(self.contexts, self.counts, size)
        self.followers = np.bincount(self.contexts, self.counts > 0, size)

    def interpolate(self, contexts, found, lower):
        """Returns the probabilities of this order, given those of the order below.

        Args:
            contexts: int `[n]`, -1 where the context was never seen.
            found: int `[n]`, the index of context and token together, -1 where never seen.
            lower: float `[n]`.
        """
        known = np.logical_and(contexts >= 0, contexts < len(self.totals))
        contexts = np.where(known, contexts, 0)
        totals = np.where(known, self.totals[contexts], 0)
        counts = np.where(found >= 0, self.counts[found], 0)
        left = self.discount * self.followers[contexts]
        above = np.maximum(counts - self.discount, 0.0)
        return np.where(totals > 0, (above + left * lower) / np.maximum(totals, 1), lower)
