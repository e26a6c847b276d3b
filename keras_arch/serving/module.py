"""What a SavedModel holds: weights, the tokenizer's tables, and a function for each signature."""

import math

import tensorflow as tf

from keras_arch.generation.filters import Temperature
from keras_arch.generation.samplers import Greedy
from keras_arch.generation.score import logits as model_logits
from keras_arch.serving.decoder import Prompts
from keras_arch.serving.rows import check, check_ids, longest, pad_left, start_all, start_empty
from keras_arch.serving.score import log_likelihoods

TEXT = tf.TensorSpec([None], tf.string, name="text")


class TextModule(tf.Module):
    """The functions of an export; see `keras_arch.serving.export`.

    Args:
        decoder: A `Decoder`.
        tokenizer: A tokenizer of `keras_arch.text`.
        bos_id: What an empty text starts from, and what every text is scored after; or None.
    """

    def __init__(self, decoder, tokenizer, bos_id):
        super().__init__()
        self.decoder, self.stepper = decoder, decoder.stepper
        self.tokenizer, self.bos_id = tokenizer, bos_id
        # What the functions read must be found from here to be saved.
        self.weights = [variable.value for variable in self.stepper.variables]
        self.tables = tokenizer.resources

    def signatures(self):
        """Returns the signatures by name, each a `tf.function` that gives a dict of tensors."""
        signatures = {
            "serving_default": self.serve_function(),
            "generate": self.generate_function(),
            "score": self.score_function(),
            "logits": self.logits_function(),
        }
        if self.decoder.search is not None:
            signatures["search"] = self.search_function(self.answer)
        return signatures

    def read(self, text, limit):
        """Returns the `Prompts` for texts, string `[B]`, and at most `limit` new tokens."""
        rows = start_empty(self.tokenizer.encode_tensor(text), text, self.bos_id)
        with tf.control_dependencies(self._check_lengths(rows, limit)):
            return Prompts(*pad_left(rows), {})

    def serve_function(self):
        @tf.function(input_signature=[TEXT], autograph=False)
        def serve(text):
            limit = tf.constant(self.decoder.max_new_tokens)
            prompts = self.read(text, limit)
            if self.decoder.search is not None:
                width = tf.constant(self.decoder.search.width)
                found = self.decoder.run_search(prompts, limit, width)
            else:
                sampler = self.decoder.sampler
                found = self.decoder.run_sampler(prompts, limit, fresh_seed(), sampler)
            return self.answer(prompts, found, limit)

        return serve

    def generate_function(self):
        specs = [
            TEXT,
            tf.TensorSpec([], tf.int64, name="seed"),
            tf.TensorSpec([], tf.int32, name="max_new_tokens"),
            tf.TensorSpec([], tf.float32, name="temperature"),
        ]

        none, most = tf.constant(-1, tf.int64), tf.constant(self.decoder.max_new_tokens)
        own = tf.constant(temperature_of(self.decoder.sampler))

        # The defaults go into the signature: a server fills in what a gRPC request leaves out.
        @tf.function(input_signature=specs, autograph=False)
        def generate(text, seed=none, max_new_tokens=most, temperature=own):
            checks = [_check_seed(seed), _check_temperature(temperature)]
            with tf.control_dependencies([*checks, self._check_limit(max_new_tokens)]):
                seed, limit = tf.identity(seed), tf.identity(max_new_tokens)
                temperature = tf.identity(temperature)
            seed = tf.where(seed < 0, fresh_seed(), tf.bitcast(seed, tf.int32))
            sampler = self.decoder.sampler.with_temperature(temperature)
            prompts = self.read(text, limit)
            found = self.decoder.run_sampler(prompts, limit, seed, sampler)
            return self.answer(prompts, found, limit)

        return generate

    def search_function(self, answer):
        """Returns the function that answers by beam search what `answer` makes of what is found."""
        specs = [
            TEXT,
            tf.TensorSpec([], tf.int32, name="width"),
            tf.TensorSpec([], tf.int32, name="max_new_tokens"),
        ]
        own = tf.constant(self.decoder.search.width)
        most = tf.constant(self.decoder.max_new_tokens)

        @tf.function(input_signature=specs, autograph=False)
        def search(text, width=own, max_new_tokens=most):
            checks = [self.decoder.check_width(width), self._check_limit(max_new_tokens)]
            with tf.control_dependencies(checks):
                width, limit = tf.identity(width), tf.identity(max_new_tokens)
            prompts = self.read(text, limit)
            found = self.decoder.run_search(prompts, limit, width)
            return answer(prompts, found, limit)

        return search

    def _check_limit(self, max_new_tokens):
        most = self.decoder.max_new_tokens
        return check(
            (max_new_tokens >= 1) & (max_new_tokens <= most),
            f"max_new_tokens must be from 1 to {most}, the most that was exported; received "
            "max_new_tokens=",
            max_new_tokens,
        )

    def answer(self, prompts, found, limit):
        """Returns the outputs for what was `Found` in at most `limit` tokens."""
        stops = tf.constant(self.decoder.stop_ids, tf.int32)
        stopped = tf.reduce_any(found.token_ids[..., None] == stops, axis=-1)
        kept = tf.ragged.boolean_mask(found.token_ids, found.valid & ~stopped)
        answer = {
            "text": self.tokenizer.decode_tensor(kept),
            "token_ids": found.token_ids[:, :limit],
            "log_probabilities": found.log_probabilities[:, :limit],
            "token_count": tf.math.count_nonzero(found.valid, axis=1, dtype=tf.int32),
        }
        return answer if found.scores is None else answer | {"score": found.scores}

    def _check_lengths(self, rows, limit):
        context = self.stepper.context_length
        if context is None:
            return []
        length = longest(tf.cast(rows.row_lengths(), tf.int32), at_least=0)
        words = f"a text has too many tokens for the context of {context} tokens: the longest has "
        ok = length + limit <= context
        return [check(ok, words, length, "and max_new_tokens=", limit, "come to it")]

    def score_function(self):
        @tf.function(input_signature=[TEXT], autograph=False)
        def score(text):
            return self.score(text, {})

        return score

    def score(self, text, context):
        """Returns the outputs of `score` for texts, string `[B]`, given context inputs."""
        rows = start_all(self.tokenizer.encode_tensor(text), self.bos_id)
        stride = max(1, (self.stepper.context_length or 0) // 2)
        totals = log_likelihoods(self.stepper, rows, stride, context)
        counts = tf.maximum(tf.cast(rows.row_lengths(), tf.int32) - 1, 0)
        tokens = tf.cast(tf.maximum(counts, 1), tf.float32)
        return {
            "log_likelihood": totals,
            "token_count": counts,
            "perplexity": tf.exp(-totals / tokens),
        }

    def logits_function(self):
        @tf.function(input_signature=[*ids_and_valid("token_ids", "valid")], autograph=False)
        def logits(token_ids, valid):
            return self.logits(token_ids, valid, {})

        return logits

    def logits(self, token_ids, valid, context):
        """Returns the outputs of `logits` for int32 and bool `[B, T]`, given context inputs."""
        checks = check_ids("token_ids", token_ids, valid, self.tokenizer.vocabulary_size)
        limit = self.stepper.context_length
        if limit is not None:
            length = longest(tf.math.count_nonzero(valid, axis=1, dtype=tf.int32), at_least=0)
            words = f"a row has too many tokens for the context of {limit} tokens: "
            checks.append(check(length <= limit, words, length))
        with tf.control_dependencies(checks):
            token_ids, valid = tf.identity(token_ids), tf.identity(valid)
        output = model_logits(self.stepper, token_ids, valid, context)
        return {"logits": tf.cast(output, tf.float32)}


def ids_and_valid(ids_name, valid_name):
    """Returns the specs of rows of ids and of their validity, `[B, T]`."""
    types = {ids_name: tf.int32, valid_name: tf.bool}
    return [tf.TensorSpec([None, None], dtype, name=name) for name, dtype in types.items()]


def _check_seed(seed):
    return check(seed >= -1, "seed must be 0 or more, or -1 for none; received seed=", seed)


def _check_temperature(temperature):
    return check(
        (temperature >= 0) & tf.math.is_finite(temperature),
        "temperature must be 0 (greedy) or positive; received temperature=",
        temperature,
    )


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
