"""Heads that tell something of whole texts: a vector, a class, how alike two are."""

import tensorflow as tf

from keras_arch.serving.encoder_module import EncoderModule
from keras_arch.serving.encoder_rows import softmax


class Embedding(EncoderModule):
    """From `text` to `vector`."""

    def answer(self, text):
        return {"vector": tf.cast(self.run(self.read(text)), tf.float32)}


class Similarity(EncoderModule):
    """From `text` and `other_text` to `similarity`."""

    inputs = ("text", "other_text")

    def answer(self, text, other_text):
        pair = {"first": self.read(text), "second": self.read(other_text)}
        values = {f"{which}_{name}": x for which, own in pair.items() for name, x in own.items()}
        return {"similarity": tf.cast(self.run(values), tf.float32)}


class Classification(EncoderModule):
    """From `text` to `probabilities` and the `label` of the greatest.

    Args:
        model: As for `EncoderModule`; so are the others.
        labels: Names of the classes.
    """

    options = ("labels",)

    def __init__(self, model, tokenizer, layout, labels=()):
        super().__init__(model, tokenizer, layout)
        self.labels = _checked(labels, model.output.shape[-1])

    def answer(self, text):
        probabilities = softmax(self.run(self.read(text)))
        label = tf.gather(tf.constant(self.labels), tf.argmax(probabilities, axis=-1))
        return {"probabilities": probabilities, "label": label}


def _checked(labels, classes):
    """Returns the labels as a list; raises ValueError if they do not name the classes."""
    found = [] if isinstance(labels, str) else [*labels]
    named = all(isinstance(label, str) and label for label in found)
    if not named or not len(found) == len(set(found)) == classes:
        raise ValueError(
            f"labels must be the distinct names of the model's {classes} classes, in their order; "
            f"received labels={labels!r}."
        )
    return found
