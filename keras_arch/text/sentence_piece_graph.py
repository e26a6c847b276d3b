"""SentencePiece inside a TensorFlow graph, by tensorflow_text."""

from __future__ import annotations

import hashlib

import tensorflow as tf
from tensorflow_text.python.ops import sentencepiece_tokenizer

OPS = sentencepiece_tokenizer.gen_sentencepiece_tokenizer


class SentencePieceModel(tf.saved_model.experimental.TrackableResource):
    """A model in TensorFlow's memory, also in that of a process which loads a SavedModel.

    tensorflow_text's own class gives the resource no name. A kernel owns it then, and
    `tf.random.set_seed`, which `keras.utils.set_random_seed` calls, deletes all kernels. A named
    resource belongs to the process, once for every distinct model, and stays until its end.

    Args:
        model: The content of the model's file.
    """

    def __init__(self, model: bytes):
        self._model = model
        self._shared_name = f"sentence_piece_{hashlib.sha256(model).hexdigest()}"
        # A graph may be traced now, which the resource must outlive.
        with tf.init_scope():
            super().__init__()
            _ = self.resource_handle  # It is made when it is first asked for.

    def _create_resource(self):
        return OPS.sentencepiece_op(model=self._model, shared_name=self._shared_name)

    def encode(self, texts: tf.Tensor, dtype: tf.DType = tf.int32) -> tf.RaggedTensor:
        """Encodes valid UTF-8, string `[B]`, to ragged `[B, None]`: ids, or pieces of `tf.string`.

        The piece of what is unknown is its text.
        """
        tokens, row_splits = OPS.sentencepiece_tokenize_op(
            self.resource_handle,
            texts,
            nbest_size=0,
            alpha=1.0,
            add_bos=False,
            add_eos=False,
            reverse=False,
            out_type=dtype,
        )
        return tf.RaggedTensor.from_row_splits(tokens, row_splits, validate=False)
