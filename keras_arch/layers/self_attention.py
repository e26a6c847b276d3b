"""Self-attention: multi-head, grouped and multi-query, with its key/value cache."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_arch.backend import write_slots
from keras_arch.checks import check_positive, check_rate
from keras_arch.layers import attention_ops
from keras_arch.layers.dropout import Dropout
from keras_arch.layers.part import Part, fresh


class Slots(NamedTuple):
    """What attention knows of the slots of a row: int32 `[B, T]` each; segment 0 means a pad."""

    positions: Any
    segments: Any


@keras.saving.register_keras_serializable(package="keras_arch")
class SelfAttention(Part):
    """Every token gathers from the real tokens up to itself (or, not causal, from all).

    The order of work: project, head norm, rotary, write cache, score, cap, bias, mask, softmax in
    float32, dropout, mix, project. Source: Vaswani et al. 2017, section 3.2; grouped heads: Ainslie
    et al. 2023. Pads take part in nothing, even if they hold NaN: their inputs are selected out.

    Args:
        heads: N, query heads.
        head_width: H.
        key_value_heads: K, divides N. N (default): multi-head; 1: multi-query (Shazeer 2019).
        use_bias: Whether queries, keys and values have biases.
        rotary: Optional `Rotary`.
        query_norm: Optional norm layer over H for queries (e.g. Qwen3's RMS norm).
        key_norm: The same for keys; give both or none.
        window: Optional number of tokens seen, the query's own included (Beltagy et al. 2020,
            section 3.1).
        logit_cap: Optional c: scores become `c * tanh(scores / c)` (Gemma 2, 2024, section 2).
        scale: What scores are multiplied by; default `H ** -0.5`.
        causal: Whether tokens are hidden from the ones before them.
        dropout: Rate of dropped attention weights.
        kernel_initializer: Initializer of the query, key and value matrix.
        output_initializer: Initializer of the output matrix; default `kernel_initializer`.
        use_output_bias: Whether the output matrix has a bias; default `use_bias`.

    Call arguments:
        x: float `[B, T, D]`.
        positions: int `[B, T]`.
        valid: bool `[B, T]`, True = real token.
        bias: Optional float `[B or 1, N, T, T]`, added to the scores.
        segment_ids: Optional int `[B, T]`; tokens attend within their own segment only. Not with
            `DynamicNTKScaling`, whose frequencies belong to one document a row.

    Returns:
        float `[B, T, D]`.

    Raises:
        ValueError: If an argument is not positive, K does not divide N, a rate is outside [0, 1),
            or only one of the two norms is given.
    """

    def __init__(
        self,
        heads,
        head_width,
        key_value_heads=None,
        use_bias=False,
        rotary=None,
        query_norm=None,
        key_norm=None,
        window=None,
        logit_cap=None,
        scale=None,
        causal=True,
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        output_initializer=None,
        use_output_bias=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.heads = heads
        self.head_width = head_width
        self.key_value_heads = heads if key_value_heads is None else key_value_heads
        self.use_bias = use_bias
        self.use_output_bias = use_bias if use_output_bias is None else use_output_bias
        self.rotary = rotary
        self.query_norm = query_norm
        self.key_norm = key_norm
        self.window = window
        self.logit_cap = logit_cap
        self.scale = scale
        self.causal = causal
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.output_initializer = keras.initializers.get(output_initializer or kernel_initializer)
        self._check()
        self.drop = Dropout(dropout, dtype=self.dtype_policy, name="drop")
        self.query_key_value = keras.layers.Dense(
            (heads + 2 * self.key_value_heads) * head_width,
            use_bias=use_bias,
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="query_key_value",
        )

    def _check(self):
        attention_ops.check_heads(self.heads, self.head_width, self.key_value_heads)
        if self.rotary is not None and self.head_width % 2:
            raise ValueError(
                f"head_width must be even for rotary; received head_width={self.head_width}."
            )
        if self.window is not None:
            check_positive(window=self.window)
            if not self.causal:
                raise ValueError(f"window needs causal=True; received window={self.window}.")
        if self.logit_cap is not None and not self.logit_cap > 0:
            raise ValueError(f"logit_cap must be positive; received logit_cap={self.logit_cap}.")
        if (self.query_norm is None) != (self.key_norm is None):
            raise ValueError(
                "query_norm and key_norm go together; received "
                f"query_norm={self.query_norm}, key_norm={self.key_norm}."
            )
        check_rate(dropout=self.dropout)

    def build(self, x_shape):
        self.query_key_value.build(x_shape)
        self.output_projection = keras.layers.Dense(
            x_shape[-1],
            use_bias=self.use_output_bias,
            kernel_initializer=fresh(self.output_initializer),
            dtype=self.dtype_policy,
            name="output_projection",
        )
        self.output_projection.build((*x_shape[:-1], self.heads * self.head_width))
        if self.query_norm is not None:
            self.query_norm.build((None, None, None, self.head_width))
            self.key_norm.build((None, None, None, self.head_width))

    def call(self, x, positions, valid, bias=None, segment_ids=None):
        x, slots = self._select(x, positions, valid, segment_ids)
        query, key, value = self._project(x, positions)
        if not attention_ops.can_fuse() or self.dropout or self.logit_cap is not None:
            weights = self._weigh(query, key, slots, slots, 0, bias)
            return self._gather(self._mix(weights, value), slots)
        query, key = self._rotate_late(query, key, slots, slots)
        allow = self._allow(query, key, slots, slots, 0)
        heads = self.key_value_heads
        mixed = attention_ops.fused_attention(query, key, value, heads, self._scale, allow, bias)
        return self._gather(mixed, slots)

    def compute_output_spec(self, x, positions, valid, bias=None, segment_ids=None):
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def attention_weights(self, x, positions, valid, bias=None, segment_ids=None):
        """Returns what `call` mixes the values by, float32 `[B, N, T, T]`, before dropout."""
        x, slots = self._select(x, positions, valid, segment_ids)
        query, key, _ = self._project(x, positions)
        weights = self._weigh(query, key, slots, slots, 0, bias)
        return ops.where(slots.segments[:, None, :, None] > 0, weights, 0.0)

    def start(self, batch, length):
        """Returns an empty cache of `length` slots.

        `key`, `value`: float `[B * K, S, H]`; `segment`: int32 `[B, S]`, 0 = empty or a pad; and
        `position`: int32 `[B, S]`, if the layer asks for the positions of keys.

        Raises:
            ValueError: If the layer is not causal: earlier outputs would change with later tokens.
        """
        if not self.causal:
            raise ValueError(f"{self.name} cannot decode step by step; received causal=False.")
        shape = (batch * self.key_value_heads, length, self.head_width)
        state = {
            "key": ops.zeros(shape, self.compute_dtype),
            "value": ops.zeros(shape, self.compute_dtype),
            "segment": ops.zeros((batch, length), "int32"),
        }
        if self._reads_key_positions:
            state["position"] = ops.zeros((batch, length), "int32")
        return state

    def step(self, x, positions, valid, bias=None, segment_ids=None, *, state, cursor):
        """Attends from a chunk to the cache and itself: returns float `[B, T, D]` and the state.

        `bias`: float `[B or 1, N, T, S]` over all slots of the cache.
        """
        x, slots = self._select(x, positions, valid, segment_ids)
        query, key, value = self._project(x, positions)
        chunk = {"key": key, "value": value, "segment": slots.segments, "position": positions}
        state = {name: write_slots(x, chunk[name], cursor, axis=1) for name, x in state.items()}
        cached = Slots(state.get("position"), state["segment"])
        weights = self._weigh(query, state["key"], slots, cached, cursor, bias)
        return self._gather(self._mix(weights, state["value"]), slots), state

    @property
    def _scale(self):
        return self.head_width**-0.5 if self.scale is None else self.scale

    @property
    def _reads_key_positions(self):
        return self.window is not None or self._rotates_late

    @property
    def _rotates_late(self):
        """Whether keys turn anew as the row grows, so that the cache holds them unturned."""
        return self.rotary is not None and self.rotary.depends_on_length

    def _select(self, x, positions, valid, segment_ids):
        """Returns the inputs with pads selected out, and what is known of their slots."""
        if segment_ids is not None and self._rotates_late:
            raise ValueError(
                f"{self.name} takes no segment_ids: {self.rotary.scaling} gives a row one set of "
                "frequencies."
            )
        slots = Slots(positions, attention_ops.segments(valid, segment_ids))
        return ops.where(valid[..., None], x, 0.0), slots

    def _project(self, x, positions):
        """Returns query `[B, N, T, H]`, key and value `[B * K, T, H]`."""
        total = self.heads + 2 * self.key_value_heads
        projected = attention_ops.split_heads(self.query_key_value(x), total)
        keys, values = self.heads, self.heads + self.key_value_heads
        query, key, value = projected[:, :keys], projected[:, keys:values], projected[:, values:]
        if self.query_norm is not None:
            query, key = self.query_norm(query), self.key_norm(key)
        if self.rotary is not None and not self._rotates_late:
            query, key = self.rotary(query, positions), self.rotary(key, positions)
        return query, attention_ops.merge_batch(key), attention_ops.merge_batch(value)

    def _weigh(self, query, key, slots, key_slots, cursor, bias):
        """Returns the attention weights, float32 `[B, N, T, S]`."""
        query, key = self._rotate_late(query, key, slots, key_slots)
        scores = attention_ops.attention_scores(query, key, self.key_value_heads, self._scale)
        if self.logit_cap is not None:
            scores = self.logit_cap * ops.tanh(scores / self.logit_cap)
        if bias is not None:
            scores = scores + bias
        allow = self._allow(query, key, slots, key_slots, cursor)
        return attention_ops.masked_softmax(scores, allow)

    def _rotate_late(self, query, key, slots, key_slots):
        """Returns query and key, turned if they turn by the row's length."""
        if not self._rotates_late:
            return query, key
        length = ops.max(slots.positions, axis=1) + 1
        query = self.rotary(query, slots.positions, length)
        key = attention_ops.split_batch(key, self.key_value_heads)
        return query, attention_ops.merge_batch(self.rotary(key, key_slots.positions, length))

    def _allow(self, query, key, slots, key_slots, cursor):
        """Returns which keys each query sees, bool `[B, T, S]`; a pad sees none."""
        allow = attention_ops.same_segment(slots.segments, key_slots.segments)
        if self.causal:
            seen = attention_ops.causal(ops.shape(query)[2], ops.shape(key)[1], cursor)
            allow = ops.logical_and(allow, seen)
        if self.window is not None:
            near = attention_ops.within_window(slots.positions, key_slots.positions, self.window)
            allow = ops.logical_and(allow, near)
        return allow

    def _mix(self, weights, value):
        """Returns the weighted sums of the values, float `[B, N, T, H]`."""
        weights = self.drop(ops.cast(weights, self.compute_dtype))
        return attention_ops.mix_values(weights, value, self.key_value_heads)

    def _gather(self, mixed, slots):
        """Joins the heads and projects: float `[B, T, D]`."""
        mixed = attention_ops.merge_heads(mixed)
        # A pad is allowed no key: its weights say nothing.
        mixed = ops.where(slots.segments[..., None] > 0, mixed, 0.0)
        return self.output_projection(mixed)
