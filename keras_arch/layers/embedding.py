"""Token embedding, whose table can serve as the tied output head."""

import keras
from keras import ops

from keras_arch.backend import lookup
from keras_arch.checks import check_positive
from keras_arch.layers.part import Part, fresh
from keras_arch.layers.products import multiply_rows


@keras.saving.register_keras_serializable(package="keras_arch")
class TokenEmbedding(Part):
    """Looks tokens up in a table `[V, D]`; with `reverse=True` scores them all by the same table.

    Called twice in one functional graph, it is the tied head of the model (Press & Wolf 2017,
    section 2): one layer, one weight.

    Keras's int8 quantisation is of the table alone, each row by its largest entry; what is scored
    stays float, whatever the configuration's quantizer of activations.

    Args:
        vocabulary_size: V.
        width: D.
        scale: Number that multiplies the looked-up vectors (`D ** 0.5` in Vaswani et al. 2017,
            section 3.4).
        embeddings_initializer: Initializer of the table.
        reverse_scale: Number that multiplies the vectors to score (`D ** -0.5` in T5).

    Call arguments:
        inputs: int token ids `[B, T]`, or with `reverse=True` float `[B, T, D]`.
        reverse: Static bool.

    Returns:
        float `[B, T, D]`, or logits `[B, T, V]`.
    """

    def __init__(
        self,
        vocabulary_size,
        width,
        scale=1.0,
        embeddings_initializer="uniform",
        reverse_scale=1.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(vocabulary_size=vocabulary_size, width=width)
        self.vocabulary_size = vocabulary_size
        self.width = width
        self.scale = scale
        self.reverse_scale = reverse_scale
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, input_shape):
        if self.quantization_mode is not None:
            self.quantized_build(input_shape, self.quantization_mode)
            return
        self.table = self.add_weight(
            shape=(self.vocabulary_size, self.width),
            initializer=fresh(self.embeddings_initializer),
            name="table",
        )

    def quantized_build(self, input_shape, mode):
        """Makes the table of a quantised layer; the mode is "int8"."""
        _check_mode(mode)
        shape = (self.vocabulary_size, self.width)
        self.table = self.add_weight(
            shape=shape, initializer="zeros", dtype="int8", trainable=False, name="table"
        )
        # What an entry was multiplied by.
        self.table_scale = self.add_weight(
            shape=shape[:1], initializer="ones", trainable=False, name="table_scale"
        )
        self._is_quantized = True  # as Keras asks of a layer

    def quantize(self, mode=None, type_check=True, config=None):
        """Turns the table into int8; Keras calls it from `model.quantize`."""
        _check_mode(mode)
        quantizer = keras.quantizers.AbsMaxQuantizer(axis=-1)
        table, scale = quantizer(self.table, to_numpy=True)
        del self.table
        self.quantized_build(None, mode)
        self.table.assign(table)
        self.table_scale.assign(scale[:, 0])
        self.dtype_policy = f"{mode}_from_{self.dtype_policy.name}"

    def quantized_call(self, inputs, reverse=False):
        """Does what `call` does, by the quantised table."""
        scale = ops.cast(self.table_scale, self.compute_dtype)
        if reverse:
            table = ops.cast(self.table, self.compute_dtype)
            return self._score(inputs, table) / scale
        x = ops.cast(ops.take(self.table, inputs, axis=0), self.compute_dtype)
        return x * (self.scale / ops.take(scale, inputs, axis=0)[..., None])

    def call(self, inputs, reverse=False):
        table = ops.cast(self.table, self.compute_dtype)
        if reverse:
            return self._score(inputs, table)
        x = lookup(table, inputs)
        return x if self.scale == 1.0 else x * self.scale

    def _score(self, x, table):
        return _products(x if self.reverse_scale == 1.0 else x * self.reverse_scale, table)

    def compute_output_spec(self, inputs, reverse=False):
        width = self.vocabulary_size if reverse else self.width
        batch_and_time = inputs.shape[:-1] if reverse else inputs.shape
        return keras.KerasTensor((*batch_and_time, width), self.compute_dtype)


def _products(x, table):
    """Returns the products `[B, T, V]` of vectors `[B, T, D]` and the rows of a table `[V, D]`."""
    if x.shape[1] != 1:
        return multiply_rows(x, ops.transpose(table))
    # Table first: at batch 8 this order takes two thirds of the time on PyTorch and on TensorFlow
    # without XLA, and no longer elsewhere.
    return ops.transpose(ops.matmul(table, ops.transpose(x[:, 0])))[:, None]


def _check_mode(mode):
    if mode != "int8":
        # Keras takes this error for a layer to leave as it is.
        raise NotImplementedError(f"TokenEmbedding has mode 'int8'; received mode={mode!r}.")
