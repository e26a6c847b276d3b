"""What a SavedModel holds: weights, the tokenizer's tables, and a function for each signature."""

import math

import tensorflow as tf

from keras_arch.generation.decode import decode
from keras_arch.generation.filters import Temperature
from keras_arch.generation.samplers import Greedy
from keras_arch.generation.score import logits as model_logits
from keras_arch.serving.rows import check, longest, pad_left, start_all, start_empty
from keras_arch.serving.score import log_likelihoods

TEXT = tf.TensorSpec([None], tf.string, name="text")


class TextModule(tf.Module):
    """The functions of an export; see `keras_arch.serving.export`.

    Args:
        stepper: The model's `Stepper`.
        tokenizer: A tokenizer of `keras_arch.text`.
        max_new_tokens: As in `export`; so are the others.
    """

    def __init__(self, stepper, tokenizer, max_new_tokens, sampler, stop_ids, bos_id):
        super().__init__()
        self.stepper, self.tokenizer, self.sampler = stepper, tokenizer, sampler
        self.max_new_tokens, self.stop_ids, self.bos_id = max_new_tokens, [*stop_ids], bos_id
        # What the functions read must be found from here to be saved.
        self.weights = [variable.value for variable in stepper.variables]
        self.tables = tokenizer.resources

    def signatures(self):
        """Returns the signatures by name, each a `tf.function` that gives a dict of tensors."""
        return {
            "serving_default": self._serve(),
            "generate": self._generate(),
            "score": self._score(),
            "logits": self._logits(),
        }

    def _serve(self):
        @tf.function(input_signature=[TEXT], autograph=False)
        def serve(text):
            limit = tf.constant(self.max_new_tokens)
            return self._continue(text, fresh_seed(), limit, self.sampler)

        return serve

    def _generate(self):
        specs = [
            TEXT,
            tf.TensorSpec([], tf.int64, name="seed"),
            tf.TensorSpec([], tf.int32, name="max_new_tokens"),
            tf.TensorSpec([], tf.float32, name="temperature"),
        ]

        none, most = tf.constant(-1, tf.int64), tf.constant(self.max_new_tokens)
        own = tf.constant(temperature_of(self.sampler))

        # The defaults go into the signature: a server fills in what a gRPC request leaves out.
        @tf.function(input_signature=specs, autograph=False)
        def generate(text, seed=none, max_new_tokens=most, temperature=own):
            with tf.control_dependencies(self._checks(seed, max_new_tokens, temperature)):
                seed, limit = tf.identity(seed), tf.identity(max_new_tokens)
                temperature = tf.identity(temperature)
            seed = tf.where(seed < 0, fresh_seed(), tf.bitcast(seed, tf.int32))
            sampler = self.sampler.with_temperature(temperature)
            return self._continue(text, seed, limit, sampler)

        return generate

    def _checks(self, seed, max_new_tokens, temperature):
        most = self.max_new_tokens
        return [
            check(seed >= -1, "seed must be 0 or more, or -1 for none; received seed=", seed),
            check(
                (max_new_tokens >= 1) & (max_new_tokens <= most),
                f"max_new_tokens must be from 1 to {most}, the most that was exported; received "
                "max_new_tokens=",
                max_new_tokens,
            ),
            check(
                (temperature >= 0) & tf.math.is_finite(temperature),
                "temperature must be 0 (greedy) or positive; received temperature=",
                temperature,
            ),
        ]

    def _continue(self, text, seed, limit, sampler):
        """Returns what `generate` answers, for at most `limit` new tokens."""
        rows = start_empty(self.tokenizer.encode_tensor(text), text, self.bos_id)
        with tf.control_dependencies(self._check_lengths(rows, limit)):
            token_ids, valid = pad_left(rows)
        stops = tf.constant(self.stop_ids, tf.int32)
        token_ids, valid, log_probabilities = decode(
            self.stepper,
            token_ids,
            valid,
            self.max_new_tokens,
            limit,
            sampler,
            seed,
            stops,
            return_logprobs=True,
        )
        stopped = tf.reduce_any(token_ids[..., None] == stops, axis=-1)
        kept = tf.ragged.boolean_mask(token_ids, valid & ~stopped)
        return {
            "text": self.tokenizer.decode_tensor(kept),
            "token_ids": token_ids[:, :limit],
            "log_probabilities": log_probabilities[:, :limit],
            "token_count": tf.math.count_nonzero(valid, axis=1, dtype=tf.int32),
        }

    def _check_lengths(self, rows, limit):
        context = self.stepper.context_length
        if context is None:
            return []
        length = longest(tf.cast(rows.row_lengths(), tf.int32), at_least=0)
        words = f"a text has too many tokens for the context of {context} tokens: the longest has "
        ok = length + limit <= context
        return [check(ok, words, length, "and max_new_tokens=", limit, "come to it")]

    def _score(self):
        stride = max(1, (self.stepper.context_length or 0) // 2)

        @tf.function(input_signature=[TEXT], autograph=False)
        def score(text):
            rows = start_all(self.tokenizer.encode_tensor(text), self.bos_id)
            totals = log_likelihoods(self.stepper, rows, stride)
            counts = tf.maximum(tf.cast(rows.row_lengths(), tf.int32) - 1, 0)
            tokens = tf.cast(tf.maximum(counts, 1), tf.float32)
            return {
                "log_likelihood": totals,
                "token_count": counts,
                "perplexity": tf.exp(-totals / tokens),
            }

        return score

    def _logits(self):
        specs = [
            tf.TensorSpec([None, None], tf.int32, name="token_ids"),
            tf.TensorSpec([None, None], tf.bool, name="valid"),
        ]

        @tf.function(input_signature=specs, autograph=False)
        def logits(token_ids, valid):
            with tf.control_dependencies(self._check_ids(token_ids, valid)):
                token_ids, valid = tf.identity(token_ids), tf.identity(valid)
            return {"logits": tf.cast(model_logits(self.stepper, token_ids, valid), tf.float32)}

        return logits

    def _check_ids(self, token_ids, valid):
        shapes = tf.shape(token_ids), tf.shape(valid)
        words = "token_ids and valid must have one shape; received the shapes"
        checks = [check(tf.reduce_all(shapes[0] == shapes[1]), words, *shapes)]
        context, size = self.stepper.context_length, self.tokenizer.vocabulary_size
        wrong = (token_ids < 0) | (token_ids >= size)
        words = f"token_ids must be from 0 to {size - 1}; received"
        checks.append(check(~tf.reduce_any(wrong), words, token_ids[wrong]))
        if context is not None:
            length = longest(tf.math.count_nonzero(valid, axis=1, dtype=tf.int32), at_least=0)
            words = f"a row has too many tokens for the context of {context} tokens: "
            checks.append(check(length <= context, words, length))
        return checks


def fresh_seed():
    """Returns int32 `[2]`, another one at each call whatever TensorFlow's global seed is."""
    # Seeds of 0 stand for entropy; `tf.random.uniform` would take the global seed.
    return tf.raw_ops.RandomUniformInt(
        shape=[2], minval=-(2**31), maxval=2**31 - 1, seed=0, seed2=0
    )


def temperature_of(sampler):
    """Returns a sampler's temperature, 0.0 for `Greedy`."""
    if isinstance(sampler, Greedy):
        return 0.0
    own = [part.temperature for part in sampler.filters if isinstance(part, Temperature)]
    return float(math.prod(own))
