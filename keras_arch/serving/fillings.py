"""The head that fills masks."""

import tensorflow as tf

from keras_arch.generation.fill_mask import check_filling
from keras_arch.serving.encoder_module import EncoderModule
from keras_arch.serving.encoder_rows import softmax
from keras_arch.serving.rows import check, longest


class Fillings(EncoderModule):
    """From `text` with masks to the tokens that may stand there, as `keras_arch.fill_mask`.

    Args:
        model: As for `EncoderModule`; so are the others.
        top: Tokens for each mask.
    """

    options = ("top",)

    def __init__(self, model, tokenizer, layout, top=5):
        size = check_filling(model, tokenizer, top)
        super().__init__(model, tokenizer, layout)
        self.top = min(top, size)

    def answer(self, text):
        rows = self.tokenizer.encode_tensor(text, parse_special=True)
        with tf.control_dependencies([self._check_length(rows)]):
            inputs = self.layout.lay(rows)
        masks = inputs["token_ids"] == self.tokenizer.special_ids["mask"]
        counts = tf.math.count_nonzero(masks, axis=1, dtype=tf.int32)
        words = "every text must have a mask; received"
        with tf.control_dependencies([check(tf.reduce_all(counts > 0), words, text)]):
            column = tf.range(tf.shape(masks)[1]) + tf.zeros_like(inputs["token_ids"])
        places = tf.ragged.boolean_mask(column, masks).to_tensor(shape=[None, None])
        # The model cannot take no token at all, as in an answer to no text.
        missing = longest(counts, at_least=1) - tf.shape(places)[1]
        places = tf.pad(places, [[0, 0], [0, missing]])
        probabilities = softmax(self.run({**inputs, "masked_positions": places}))
        best, token_ids = tf.math.top_k(probabilities, self.top)
        tokens = self.tokenizer.decode_tensor(tf.reshape(token_ids, [-1, 1]))
        real = tf.sequence_mask(counts, tf.shape(places)[1])[..., None]
        return {
            "tokens": tf.where(real, tf.reshape(tokens, tf.shape(token_ids)), ""),
            "token_ids": tf.where(real, token_ids, 0),
            "probabilities": tf.where(real, best, 0.0),
            "mask_count": counts,
        }

    def _check_length(self, rows):
        limit = self.layout.context_length
        length = longest(tf.cast(rows.row_lengths(), tf.int32), at_least=0) + 2
        words = f"a text has too many tokens for the context of {limit} tokens: "
        return check(limit is None or length <= limit, words, length)
