"""The head that names each word of a text."""

import tensorflow as tf

from keras_arch.serving.encoder_rows import softmax
from keras_arch.serving.text_heads import Classification
from keras_arch.text.places import columns


class Tags(Classification):
    """From `text` to the `tag` of each word, told by its first token; see `export_encoder`."""

    def answer(self, text):
        places = self.tokenizer.locate_tensor(text)
        probabilities = softmax(self.run(self.layout.lay(self.layout.cut(places.token_ids))))
        words, column = places.words.flat_values, columns(places.words)
        # Where the next token begins a word, and after the last one, a word ends.
        first = (column == 0) | (words != tf.roll(words, 1, 0))
        last = tf.roll(first, -1, 0)
        limit = self.layout.context_length
        kept = first if limit is None else first & (column < limit - 2)
        # A row's first token stands before those of the text.
        told = _where(places.token_ids.with_flat_values(column + 1), kept)
        counts = tf.cast(told.row_lengths(), tf.int32)
        told = told.to_tensor(shape=[None, None])
        count = tf.shape(told)[1]
        real = tf.sequence_mask(counts, count)
        chances = tf.gather(probabilities, told, batch_dims=1)
        tag = tf.gather(tf.constant(self.labels), tf.argmax(chances, axis=-1))
        starts = _where(places.starts, first).to_tensor(shape=[None, None])[:, :count]
        ends = _where(places.ends, last).to_tensor(shape=[None, None])[:, :count]
        return {
            "tag": tf.where(real, tag, ""),
            "probability": tf.where(real, tf.reduce_max(chances, axis=-1), 0.0),
            "start": tf.where(real, starts, 0),
            "end": tf.where(real, ends, 0),
            "word_count": counts,
        }


def _where(rows, chosen):
    """Returns ragged rows of those values that are chosen, bool `[n]`."""
    return tf.ragged.boolean_mask(rows, rows.with_flat_values(chosen))
