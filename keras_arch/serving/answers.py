"""The head that finds the answer to a question in a text, which may be longer than a row."""

import tensorflow as tf

from keras_arch.checks import check_positive
from keras_arch.serving.encoder_module import EncoderModule
from keras_arch.serving.spans import best_spans, first_greatest

LOWEST = tf.float32.min


class Answers(EncoderModule):
    """From `question` and `text` to the `answer` in it; see `export_encoder`.

    The windows are those of `keras_arch.objectives.answer_windows`, the answer is that of
    `best_answer`.

    Args:
        model: As for `EncoderModule`; so are the others.
        stride: Tokens from a window's begin to the next one's.
        longest: Most tokens of an answer.
    """

    inputs = ("question", "text")
    options = ("stride", "longest")

    def __init__(self, model, tokenizer, layout, stride=None, longest=30):
        super().__init__(model, tokenizer, layout)
        room = layout.least_room
        stride = max(1, (room or 1) // 2) if stride is None else stride
        check_positive(stride=stride, longest=longest)
        if room is not None and stride > room:
            raise ValueError(
                f"stride must be at most {room}, the tokens that the longest question leaves a "
                f"window; received stride={stride}."
            )
        self.stride, self.longest = stride, longest

    def answer(self, question, text):
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        places = self.tokenizer.locate_tensor(text)
        questions = self.layout.cut_question(self.tokenizer.encode_tensor(question))
        row, begins, ends = self._windows(questions, places.token_ids)
        questions = tf.gather(questions, row)
        tokens = tf.ragged.range(begins, ends)
        values = tf.gather(places.token_ids.flat_values, tokens.flat_values)
        inputs = self.layout.lay(questions, tokens.with_flat_values(values))
        logits = tf.cast(self.run(inputs), tf.float32)
        before = self.layout.before(questions)
        column = tf.range(tf.shape(logits)[2])
        inside = (column >= before[:, None]) & (column < (before + ends - begins)[:, None])
        scores, firsts, lasts = best_spans(logits, inside, self.longest)
        best = first_greatest(scores, row, tf.shape(text)[0])
        shift = begins - before
        first, last = (tf.gather(x + shift, best) for x in (firsts, lasts))
        none = tf.math.unsorted_segment_min(
            tf.reduce_sum(logits[:, :, 0], axis=1), row, tf.shape(text)[0]
        )
        return _told(text, places, first, last, tf.gather(scores, best)) | {"score_of_none": none}

    def _windows(self, questions, contexts):
        """Returns each window's row, and its begin and end among all contexts' tokens."""
        sizes = tf.cast(contexts.row_lengths(), tf.int32)
        room = self.layout.room_after(questions, sizes)
        beyond = tf.maximum(sizes - room, 0)
        counts = 1 + (beyond + self.stride - 1) // self.stride
        row = tf.repeat(tf.range(tf.size(sizes)), counts)
        begins = tf.ragged.range(counts).flat_values * self.stride
        ends = tf.minimum(begins + tf.gather(room, row), tf.gather(sizes, row))
        start = tf.gather(tf.cast(contexts.row_starts(), tf.int32), row)
        return row, start + begins, start + ends


def _told(text, places, first, last, score):
    """Returns the answers from the first to the last token, `[B]` among all texts' tokens."""
    found = score > LOWEST
    starts, ends = (tf.pad(x.flat_values, [[0, 1]]) for x in (places.starts, places.ends))
    start = tf.where(found, tf.gather(starts, tf.where(found, first, 0)), 0)
    end = tf.where(found, tf.gather(ends, tf.where(found, last, 0)), 0)
    return {
        "answer": tf.strings.substr(text, start, end - start, unit="UTF8_CHAR"),
        "start": start,
        "end": end,
        "score": score,
    }
