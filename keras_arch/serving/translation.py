"""What the SavedModel of a model with a source holds: source text in, target text out."""

import tensorflow as tf

from keras_arch.generation.attending import attending_calls, attending_weights
from keras_arch.serving.decoder import Prompts
from keras_arch.serving.module import TEXT, TextModule, ids_and_valid
from keras_arch.serving.rows import check, check_ids, longest

SOURCE_INPUTS = ["source_ids", "source_valid"]


class TranslationModule(TextModule):
    """The functions of an export with a source; see `keras_arch.serving.export`.

    Args:
        decoder: A `Decoder`.
        tokenizer: A tokenizer of `keras_arch.text`, of the target.
        bos_id: What every target starts from.
        source_tokenizer: A tokenizer, of the source.
        source_edges: Two lists of ids, what each source begins with and what it ends with.
    """

    def __init__(self, decoder, tokenizer, bos_id, source_tokenizer, source_edges):
        super().__init__(decoder, tokenizer, bos_id)
        self.source_edges = source_edges
        self.source_tokenizer = source_tokenizer
        self.source_tables = source_tokenizer.resources

    def signatures(self):
        """Returns the signatures by name, each a `tf.function` that gives a dict of tensors."""
        signatures = super().signatures()
        if self.decoder.search is not None and attending_calls(self.stepper.graph):
            signatures["attention"] = self.search_function(self.answer_with_attention)
        return signatures

    def read(self, text, limit):
        """Returns the `Prompts` for sources, string `[B]`."""
        context = self.read_source(text)
        rows = tf.shape(context["source_ids"])[:1]
        starts = tf.stack([tf.zeros(rows, tf.int32), tf.fill(rows, self.bos_id)], axis=1)
        valid = tf.stack([tf.zeros(rows, tf.bool), tf.ones(rows, tf.bool)], axis=1)
        return Prompts(starts, valid, context)

    def read_source(self, text):
        """Returns the context inputs for sources, string `[B]`."""
        rows = self.source_tokenizer.encode_tensor(text)
        first, last = (
            tf.tile(tf.constant([ids], tf.int32), [tf.size(text), 1]) for ids in self.source_edges
        )
        rows = tf.concat([first, rows, last], axis=1)
        lengths = tf.cast(rows.row_lengths(), tf.int32)
        length, limit = longest(lengths, at_least=1), self.stepper.source_length
        empty = lengths == 0
        checks = [check(~tf.reduce_any(empty), "a source text is empty; received", text)]
        if limit is not None:
            words = f"a source text has too many tokens for the model, source_length={limit}: "
            checks.append(check(length <= limit, words, length))
        with tf.control_dependencies(checks):
            token_ids = rows.to_tensor(shape=[None, None])
        token_ids = tf.pad(token_ids, [[0, 0], [0, length - tf.shape(token_ids)[1]]])
        values = token_ids, tf.sequence_mask(lengths, length)
        return dict(zip(SOURCE_INPUTS, values, strict=True))

    def answer_with_attention(self, prompts, found, limit):
        # Where the decoder looked for each token: what it had read then is one token behind.
        token_ids = tf.concat([prompts.token_ids[:, -1:], found.token_ids[:, :-1]], axis=1)
        inputs = {"token_ids": token_ids, "valid": found.valid, **prompts.context}
        weights = attending_weights(self.stepper.graph, inputs)
        outputs = {
            "attention" if len(weights) == 1 else f"attention_{name}": x[..., :limit, :]
            for name, x in weights.items()
        }
        source_ids, source_valid = (prompts.context[name] for name in SOURCE_INPUTS)
        return {
            **self.answer(prompts, found, limit),
            **outputs,
            "tokens": pieces(self.tokenizer, found.token_ids, found.valid)[:, :limit],
            "source_tokens": pieces(self.source_tokenizer, source_ids, source_valid),
        }

    def score_function(self):
        target = tf.TensorSpec([None], tf.string, name="target")

        @tf.function(input_signature=[TEXT, target], autograph=False)
        def score(text, target):
            shapes = tf.shape(text), tf.shape(target)
            words = "text and target must be as many; received the shapes"
            with tf.control_dependencies(
                [check(tf.reduce_all(shapes[0] == shapes[1]), words, *shapes)]
            ):
                text, target = tf.identity(text), tf.identity(target)
            return self.score(target, self.read_source(text))

        return score

    def logits_function(self):
        specs = [*ids_and_valid("token_ids", "valid"), *ids_and_valid(*SOURCE_INPUTS)]

        @tf.function(input_signature=specs, autograph=False)
        def logits(token_ids, valid, source_ids, source_valid):
            size = self.source_tokenizer.vocabulary_size
            with tf.control_dependencies(check_ids("source_ids", source_ids, source_valid, size)):
                values = tf.identity(source_ids), tf.identity(source_valid)
            context = dict(zip(SOURCE_INPUTS, values, strict=True))
            return self.logits(token_ids, valid, context)

        return logits


def pieces(tokenizer, token_ids, valid):
    """Returns the text of each token by itself, string `[B, T]`; "" at pads."""
    flat = tf.ragged.boolean_mask(tf.reshape(token_ids, [-1, 1]), tf.reshape(valid, [-1, 1]))
    return tf.reshape(tokenizer.decode_tensor(flat), tf.shape(token_ids))
