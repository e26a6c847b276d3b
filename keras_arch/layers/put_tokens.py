"""Tokens of a row replaced by others."""

import keras
from keras import ops

from keras_arch.layers.part import Part


@keras.saving.register_keras_serializable(package="keras_arch")
class PutTokens(Part):
    """Puts tokens into given slots of each row; where one is negative, nothing is put.

    Call arguments:
        token_ids: int `[B, T]`.
        slots: int `[B, M]`, in [0, T); those that are put differ.
        given: int `[B, M]`.

    Returns:
        int `[B, T]`.
    """

    def call(self, token_ids, slots, given):
        slots = ops.where(given < 0, -1, slots)
        here = slots[:, None] == ops.arange(ops.shape(token_ids)[1], dtype=slots.dtype)[:, None]
        put = ops.sum(ops.where(here, given[:, None], 0), axis=-1)
        return ops.where(ops.any(here, axis=-1), ops.cast(put, token_ids.dtype), token_ids)

    def compute_output_spec(self, token_ids, slots, given):
        return keras.KerasTensor(token_ids.shape, token_ids.dtype)
