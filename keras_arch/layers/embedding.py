"""Token embedding, whose table can serve as the tied output head."""

import keras
from keras import ops

from keras_arch.checks import check_positive
from keras_arch.layers.part import Part, fresh


def lookup(table, ids):
    """Returns rows of a table, `[..., D]` for ids `[...]`, with a dense gradient by the table.

    On TensorFlow the gradient of `take` alone is a list of rows, one for each occurrence, and
    Keras's optimizers square those before they add them (Keras 3.15): Adam's second moment and the
    clip norm come out wrong. The gradient of the product is dense; compilers drop the product.
    """
    return ops.take(table * 1.0, ids, axis=0)


@keras.saving.register_keras_serializable(package="keras_arch")
class TokenEmbedding(Part):
    """Looks tokens up in a table `[V, D]`; with `reverse=True` scores them all by the same table.

    Called twice in one functional graph, it is the tied head of the model (Press & Wolf 2017,
    section 2): one layer, one weight.

    Args:
        vocabulary_size: V.
        width: D.
        scale: Number that multiplies the looked-up vectors (`D ** 0.5` in Vaswani et al. 2017,
            section 3.4); `reverse` is not scaled.
        embeddings_initializer: Initializer of the table.

    Call arguments:
        inputs: int token ids `[B, T]`, or with `reverse=True` float `[B, T, D]`.
        reverse: Static bool.

    Returns:
        float `[B, T, D]`, or logits `[B, T, V]`.
    """

    def __init__(
        self, vocabulary_size, width, scale=1.0, embeddings_initializer="uniform", **kwargs
    ):
        super().__init__(**kwargs)
        check_positive(vocabulary_size=vocabulary_size, width=width)
        self.vocabulary_size = vocabulary_size
        self.width = width
        self.scale = scale
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, input_shape):
        self.table = self.add_weight(
            shape=(self.vocabulary_size, self.width),
            initializer=fresh(self.embeddings_initializer),
            name="table",
        )

    def call(self, inputs, reverse=False):
        table = ops.cast(self.table, self.compute_dtype)
        if reverse:
            return ops.matmul(inputs, ops.transpose(table))
        x = lookup(table, inputs)
        return x if self.scale == 1.0 else x * self.scale

    def compute_output_spec(self, inputs, reverse=False):
        width = self.vocabulary_size if reverse else self.width
        batch_and_time = inputs.shape[:-1] if reverse else inputs.shape
        return keras.KerasTensor((*batch_and_time, width), self.compute_dtype)
