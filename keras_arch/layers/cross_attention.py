"""Cross-attention: multi-head attention of a decoder to a memory whose keys are made once."""

import keras
from keras import ops

from keras_arch.checks import check_positive, check_rate
from keras_arch.layers import attention_ops
from keras_arch.layers.dropout import Dropout
from keras_arch.layers.part import Part, fresh


@keras.saving.register_keras_serializable(package="keras_arch")
class CrossAttention(Part):
    """Every token gathers from the real vectors of a memory, such as an encoder's output.

    The order of work: project, score, mask, softmax in float32, dropout, mix, project. Source:
    Vaswani et al. 2017, section 3.2.3; grouped heads: Ainslie et al. 2023. What stands at the pads
    of the memory is never read, even NaN; from a row without a real vector come zeros, projected.

    In decoding, `start` makes the keys and values; all beams of a row share them.

    Args:
        heads: N, query heads.
        head_width: H.
        key_value_heads: K, divides N; default N.
        memory_width: M; default D.
        use_bias: Whether the three projections have biases.
        scale: What scores are multiplied by; default `H ** -0.5`.
        dropout: Rate of dropped attention weights.
        kernel_initializer: Initializer of the matrices before the scores.
        output_initializer: Initializer of the output matrix; default `kernel_initializer`.

    Call arguments:
        x: float `[B, T, D]`.
        memory: float `[B, S, M]`.
        memory_valid: bool `[B, S]`, True = real.

    Returns:
        float `[B, T, D]`.

    Raises:
        ValueError: If an argument is not positive, K does not divide N, or a rate is outside
            [0, 1).
    """

    def __init__(
        self,
        heads,
        head_width,
        key_value_heads=None,
        memory_width=None,
        use_bias=False,
        scale=None,
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        output_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.heads = heads
        self.head_width = head_width
        self.key_value_heads = heads if key_value_heads is None else key_value_heads
        self.memory_width = memory_width
        self.use_bias = use_bias
        self.scale = scale
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.output_initializer = keras.initializers.get(output_initializer or kernel_initializer)
        attention_ops.check_heads(heads, head_width, self.key_value_heads)
        if memory_width is not None:
            check_positive(memory_width=memory_width)
        check_rate(dropout=dropout)
        self.drop = Dropout(dropout, dtype=self.dtype_policy, name="drop")

    def build(self, x_shape):
        width, inner = x_shape[-1], self.heads * self.head_width
        self.query = self._projection(inner, self.kernel_initializer, "query")
        self.query.build((None, None, width))
        columns = 2 * self.key_value_heads * self.head_width
        self.key_value = self._projection(columns, self.kernel_initializer, "key_value")
        self.key_value.build((None, None, self.memory_width or width))
        self.output_projection = self._projection(
            width, self.output_initializer, "output_projection"
        )
        self.output_projection.build((None, None, inner))

    def _projection(self, width, initializer, name):
        return keras.layers.Dense(
            width,
            use_bias=self.use_bias,
            kernel_initializer=fresh(initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def call(self, x, memory, memory_valid):
        return self._attend(x, self._project(memory, memory_valid))

    def compute_output_spec(self, x, memory, memory_valid):
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def attention_weights(self, x, memory, memory_valid):
        """Returns what `call` mixes the values by, float32 `[B, N, T, S]`, before dropout."""
        return self._weigh(x, self._project(memory, memory_valid))

    def start(self, batch, length, memory, memory_valid):
        """Returns the keys and values of the memory, under "memory".

        `key`, `value`: float `[B * K, S, H]`; `valid`: bool `[B, S]`.
        """
        return {"memory": self._project(memory, memory_valid)}

    def step(self, x, *, state, cursor):
        """Attends from a chunk: returns float `[B, T, D]` and the state, unchanged."""
        return self._attend(x, state["memory"]), state

    def _project(self, memory, memory_valid):
        memory = ops.where(memory_valid[..., None], memory, 0.0)
        heads = self.key_value_heads
        projected = attention_ops.split_heads(self.key_value(memory), 2 * heads)
        key, value = projected[:, :heads], projected[:, heads:]
        key, value = attention_ops.merge_batch(key), attention_ops.merge_batch(value)
        return {"key": key, "value": value, "valid": memory_valid}

    def _weigh(self, x, memory):
        """Returns the attention weights, float32 `[B, N, T, S]`."""
        scale = self.head_width**-0.5 if self.scale is None else self.scale
        query = attention_ops.split_heads(self.query(x), self.heads)
        scores = attention_ops.attention_scores(query, memory["key"], self.key_value_heads, scale)
        allow = memory["valid"][:, None]
        weights = attention_ops.masked_softmax(scores, allow)
        return ops.where(allow[:, None], weights, 0.0)

    def _attend(self, x, memory):
        queries = ops.shape(x)[:2]
        folded = attention_ops.fold_rows(x, ops.shape(memory["valid"])[0])
        weights = ops.cast(self._weigh(folded, memory), self.compute_dtype)
        mixed = attention_ops.mix_values(self.drop(weights), memory["value"], self.key_value_heads)
        mixed = attention_ops.unfold_rows(attention_ops.merge_heads(mixed), queries)
        return self.output_projection(mixed)
