"""What the SavedModel of an encoder holds: weights, tokenizer, and the function of its head."""

import functools

import tensorflow as tf

from keras_arch.serving.module import TEXT
from keras_arch.serving.rows import check


class EncoderModule(tf.Module):
    """The functions of an encoder's export; see `keras_arch.serving.export_encoder`.

    A subclass has `inputs`, the names of the texts; `options`, those of its arguments that the
    others lack; and `answer`.

    Args:
        model: The functional model.
        tokenizer: A tokenizer of `keras_arch.text`.
        layout: A `RowLayout`.
    """

    inputs = ("text",)
    options = ()

    def __init__(self, model, tokenizer, layout):
        super().__init__()
        self.tokenizer, self.layout = tokenizer, layout
        # A model that is found from here would be saved, too, with functions of its own.
        self._call = functools.partial(model, training=False)
        self._names = {x.name for x in model.inputs}
        # What the functions read must be found from here to be saved.
        self.weights = [variable.value for variable in model.variables]
        self.tables = tokenizer.resources

    def signatures(self):
        """Returns the signature, a `tf.function` that gives a dict of tensors."""
        specs = [tf.TensorSpec(TEXT.shape, TEXT.dtype, name=name) for name in self.inputs]

        @tf.function(input_signature=specs, autograph=False)
        def serve(*texts):
            shapes = [tf.shape(text) for text in texts]
            words = f"{' and '.join(self.inputs)} must be as many; received the shapes"
            same = [check(tf.reduce_all(shapes[0] == x), words, *shapes) for x in shapes[1:]]
            with tf.control_dependencies(same):
                return self.answer(*map(tf.identity, texts))

        return {"serving_default": serve}

    def answer(self, *texts):
        """Returns the outputs for the texts, string `[B]` each, as a dict."""
        raise NotImplementedError

    def run(self, values):
        """Returns the model's output for its inputs, given by name among others."""
        return self._call({name: x for name, x in values.items() if name in self._names})

    def read(self, text):
        """Returns the inputs of rows of one text each, string `[B]`."""
        return self.layout.lay(self.layout.cut(self.tokenizer.encode_tensor(text)))
