"""Dropout whose noise costs no more than the products around it."""

import keras
from keras import ops

from keras_arch.backend import draws_by_hash, random_bits


@keras.saving.register_keras_serializable(package="keras_arch")
class Dropout(keras.layers.Dropout):
    """Zeroes entries at random while training, and multiplies the others by `1 / (1 - rate)`.

    Arguments, config and seeds are those of `keras.layers.Dropout`; the noise is
    `keras_arch.backend.random_bits` where that is cheaper: on a CPU, XLA makes a loop of the
    backends' own generators, which can take longer than the products. Source: Srivastava et al.
    2014, section 4.
    """

    def call(self, inputs, training=False):
        if not training or not 0.0 < self.rate < 1.0 or not draws_by_hash():
            return super().call(inputs, training=training)
        bits = random_bits(self.seed_generator.next(), self._shape_of_noise(inputs))
        # Of the bits, 2**32 values in all, those below drop an entry.
        limit = min(round(self.rate * 2**32), 2**32 - 1)
        dropped = bits < ops.convert_to_tensor(limit, dtype="uint32")
        return ops.where(dropped, ops.zeros_like(inputs), inputs / (1.0 - self.rate))

    def _shape_of_noise(self, inputs):
        shape = ops.shape(inputs)
        noise_shape = self.noise_shape or [None] * len(shape)
        return tuple(
            own if size is None else size for own, size in zip(shape, noise_shape, strict=True)
        )
