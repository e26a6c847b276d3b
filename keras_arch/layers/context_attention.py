"""What the attention of recurrent decoders shares: keys made once, weights, weighted sums."""

from collections.abc import Callable
from typing import NamedTuple

import keras
from keras import ops

from keras_arch.layers import attention_ops
from keras_arch.layers.part import Part


class ContextAttention(Part):
    """Every query gathers from the real vectors of a memory; a subclass says how they are scored.

    `project` is run once for a source, `attend` for each query or for many together; `call` is one
    after the other. Weights are a softmax in float32 over the real entries, exactly 0 elsewhere; a
    row that has no real entry gets weights 0, and a context of zeros.

    A subclass has `build(query_shape, memory_shape)`, `scores` and maybe `keys`, `weigh`, and what
    these read: `query_layers` and `query_weights`.

    Call arguments:
        query: float `[B, T, D]`.
        memory: float `[B, S, M]`.
        memory_valid: bool `[B, S]`, True = real. What stands elsewhere is never read, even NaN.
        coverage: float `[B, T, S]`, the sum of the weights that each entry got from the queries
            before; taken by attention that `reads_coverage`, and by no other.

    Returns:
        The context, float `[B, T, M]`.
    """

    #: Whether scores depend on what each entry got before.
    reads_coverage = False
    #: Whether a query is the decoder's input beside its state, rather than the state alone.
    reads_inputs = False

    def call(self, query, memory, memory_valid, coverage=None):
        return self.attend(query, self.project(memory, memory_valid), coverage)[0]

    def compute_output_spec(self, query, memory, memory_valid, coverage=None):
        return keras.KerasTensor((*query.shape[:-1], memory.shape[-1]), self.compute_dtype)

    def attention_weights(self, query, memory, memory_valid, coverage=None):
        """Returns what `call` mixes the memory by, float32 `[B, T, S]`."""
        return self.attend(query, self.project(memory, memory_valid), coverage)[1]

    def start(self, batch, length, memory, memory_valid):
        """Returns what `project` makes, under "memory"."""
        return {"memory": self.project(memory, memory_valid)}

    def step(self, query, coverage=None, *, state, cursor):
        """Attends from a chunk: returns contexts `[B, T, M]` and the state, unchanged."""
        return self.attend(query, state["memory"], coverage)[0], state

    def project(self, memory, memory_valid):
        """Returns what queries need of a memory, a dict of tensors with B on axis 0.

        `value` float `[B, S, M]`, `valid` bool `[B, S]`, and what the subclass makes of them.
        """
        value = ops.where(memory_valid[..., None], memory, 0.0)
        value = ops.cast(value, self.compute_dtype)
        return {"value": value, "valid": memory_valid, **self.keys(value, memory_valid)}

    def query_layers(self):
        """Returns the `keras.layers.Dense` that queries go through, each once: dict by name."""
        return {}

    def query_weights(self):
        """Returns the other weights that `scores` and `weigh` read: dict of tensors."""
        return {}

    def attend(self, query, projected, coverage=None, reads=None):
        """Returns the contexts and the weights of some queries.

        Args:
            query: float `[B * W, T, D]`; the W rows (beams) that share an entry of the memory stand
                together. W is 1 outside of beam search.
            projected: What `project` returned; in a loop without `value`, for which `reads.mix`
                stands.
            coverage: float `[B * W, T, S]`; see the class.
            reads: In a loop, what stands for the layer's own weights there, a `Reads`.

        Returns:
            float `[B * W, T, M]` and float32 `[B * W, T, S]`.

        Raises:
            ValueError: If coverage is given to attention that reads none, or the other way round.
        """
        if (coverage is not None) != self.reads_coverage:
            raise ValueError(
                f"{self.name} {'reads' if self.reads_coverage else 'does not read'} coverage; "
                f"received coverage={coverage!r}."
            )
        rows, queries = ops.shape(projected["valid"])[0], ops.shape(query)[:2]
        if coverage is not None:
            coverage = attention_ops.fold_rows(coverage, rows)
        if reads is None:
            reads = Reads(self.query_layers(), self.query_weights())
        folded = attention_ops.fold_rows(query, rows)
        scores = self.scores(folded, projected, coverage, reads)
        weights = self.weigh(scores, folded, projected, reads)
        mix = reads.mix or (lambda weights: ops.matmul(weights, projected["value"]))
        context = mix(ops.cast(weights, self.compute_dtype))
        context, weights = (attention_ops.unfold_rows(x, queries) for x in (context, weights))
        return context, weights

    def keys(self, memory, memory_valid):
        """Returns what `scores` needs of a memory `[B, S, M]`: a dict of tensors, B on axis 0."""
        return {}

    def scores(self, query, projected, coverage, reads):
        """Returns the scores before the softmax, float `[B, T, S]`.

        `reads`, a `Reads`, is the one way to the layer's own weights, here and in `weigh`: each of
        its layers is called once.
        """
        raise NotImplementedError

    def weigh(self, scores, query, projected, reads):
        """Returns the weights that scores `[B, T, S]` give, float32."""
        return softmax_over(scores, projected["valid"][:, None])


class Reads(NamedTuple):
    """What stands for the weights of a `ContextAttention`, so that a loop can hand them in.

    Attributes:
        layers: Functions by the names of `query_layers`.
        weights: As `query_weights` returns.
        mix: Optional function of weights `[B, T, S]` to `weights @ value`.
    """

    layers: dict
    weights: dict
    mix: Callable | None = None


def softmax_over(scores, allow):
    """Softmax over the allowed entries, in float32; zeros where none is allowed.

    Args:
        scores: float `[B, T, S]`.
        allow: bool `[B, T or 1, S]`.
    """
    weights = attention_ops.masked_softmax(scores[:, None], allow)[:, 0]
    return ops.where(allow, weights, 0.0)
