"""Text or token ids in, generated text or token ids out."""

import weakref
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_arch.backend import compile_loop
from keras_arch.checks import check_positive
from keras_arch.generation.decode import Decode
from keras_arch.generation.programs import Programs
from keras_arch.generation.prompts import check_request, check_rows, pad_left, prompt_rows
from keras_arch.generation.samplers import Greedy
from keras_arch.generation.stepper import Stepper


class Generation(NamedTuple):
    """What was generated after each prompt; numpy arrays `[B, N]`.

    Attributes:
        token_ids: int32; a row ends with its stop id, if it found one, and zeros.
        valid: bool, True = generated token.
        log_probabilities: float32, of each token by the model, in nats; None if not asked for.
        texts: The decoded rows without their stop ids, if there was a tokenizer.
    """

    token_ids: Any
    valid: Any
    log_probabilities: Any
    texts: list | None


class Generator:
    """The programs of one model: one for each bucket of shapes.

    Prompts are padded to a bucket of lengths and the number of new tokens is rounded up to one, so
    that prompts of many lengths share a program.

    Args:
        model: A functional model; see `Stepper` for what it must be.
    """

    def __init__(self, model):
        self.stepper = Stepper(model)
        self.programs = Programs()

    def __call__(self, rows, max_new_tokens, sampler, stop_ids, seed, return_logprobs):
        """Returns `(token_ids, valid, log_probabilities or None)`, numpy `[B, max_new_tokens]`.

        Args:
            rows: Checked lists of token ids, at least one and none empty.
            max_new_tokens: As in `generate`; so are `sampler`, `stop_ids` and `return_logprobs`.
            seed: int32 numpy `[2]`.
        """
        token_ids, valid = pad_left(rows, self._prompt_slots(max(map(len, rows))))
        buffer = bucket(max_new_tokens)
        key = token_ids.shape, buffer, sampler, len(stop_ids), return_logprobs
        loop = Decode(self.stepper, buffer, sampler, return_logprobs)
        program = self.programs.get(key, loop, self.stepper.variables, compile_loop)
        limit, stop_ids = np.int32(max_new_tokens), np.asarray([*stop_ids], "int32")
        outputs = program(token_ids, valid, limit, seed, stop_ids)
        return [
            None if output is None else ops.convert_to_numpy(output)[:, :max_new_tokens]
            for output in outputs
        ]

    def _prompt_slots(self, longest):
        limit = self.stepper.context_length
        # The loop reads the last token apart, so there are two slots at least.
        return max(2, bucket(longest) if limit is None else min(bucket(longest), limit))


def bucket(length):
    """Returns the length `length` is padded to: a power of 2 from 16 to 256, then every 256."""
    if length > 256:
        return -(-length // 256) * 256
    return max(16, 1 << (length - 1).bit_length())


def seed_pair(seed):
    """Returns int32 `[2]` from a seed of up to 64 bits, or from fresh entropy."""
    if seed is None:
        return np.random.SeedSequence().generate_state(2, "uint32").view("int32")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise ValueError(f"seed must be an integer in [0, 2^64); received seed={seed!r}.")
    return np.array([seed & 0xFFFFFFFF, seed >> 32], "uint32").view("int32")


def decoded_texts(token_ids, valid, stop_ids, tokenizer):
    """Returns the text of each row `[B, N]`, without its stop id."""
    keep = valid & ~np.isin(token_ids, [*stop_ids])
    return [tokenizer.decode(row[k].tolist()) for row, k in zip(token_ids, keep, strict=True)]


# A cache that keeps nothing alive: an entry goes with its model.
_generators = weakref.WeakKeyDictionary()


def generate(
    model,
    prompts,
    max_new_tokens,
    sampler=None,
    stop_ids=(),
    seed=None,
    tokenizer=None,
    valid=None,
    bos_id=None,
    return_logprobs=False,
):
    """Generates tokens after prompts with any functional model made of steppable layers.

    ```
    ka.generate(model, [[5, 3], [7, 1, 2]], max_new_tokens=20).token_ids
    ka.generate(model, "ROMEO:", 200, Sample(Temperature(0.8)), seed=1, tokenizer=t).texts[0]
    ```

    The programs compiled for a model live as long as the model.

    Args:
        model: A functional `keras.Model` from `token_ids` and `valid` to logits `[B, T, V]`.
        prompts: Lists of token ids of any lengths; or an int array `[B, T]` with `valid`; or, with
            a tokenizer, a string or a list of strings.
        max_new_tokens: Most tokens to generate for each prompt.
        sampler: `Greedy()` (default) or a `Sample`.
        stop_ids: Ids that end a row.
        seed: Integer; the same seed and prompts give the same tokens. Row i draws by (seed, i), so
            it does not depend on the other rows. None: other tokens at each call.
        tokenizer: A tokenizer of `keras_arch.text`.
        valid: bool `[B, T]`, True = real token; pads may stand on either side.
        bos_id: What an empty prompt starts from; default the tokenizer's "begin" or "end" id.
        return_logprobs: Whether to return the tokens' log-probabilities.

    Returns:
        A `Generation`.

    Raises:
        ValueError: Before any compute, if a prompt is empty without `bos_id`, has an id outside the
            vocabulary, or is with `max_new_tokens` longer than the model's context; if tokenizer,
            sampler, stop ids or `bos_id` do not go with the model; or if the model cannot be
            decoded (see `Stepper`).
    """
    check_positive(max_new_tokens=max_new_tokens)
    seed = seed_pair(seed)
    if bos_id is None and tokenizer is not None:
        bos_id = tokenizer.start_id
    sampler = Greedy() if sampler is None else sampler
    if model not in _generators:
        _generators[model] = Generator(model)
    generator = _generators[model]
    check_request(generator.stepper, tokenizer, sampler, stop_ids, bos_id)
    rows = prompt_rows(prompts, valid, tokenizer, bos_id)
    limits = generator.stepper.vocabulary_size, generator.stepper.context_length
    check_rows(rows, max_new_tokens, *limits)
    if rows:
        outputs = generator(rows, max_new_tokens, sampler, stop_ids, seed, return_logprobs)
    else:
        outputs = [np.zeros((0, max_new_tokens), t) for t in ("int32", "bool", "float32")]
        outputs[2] = outputs[2] if return_logprobs else None
    texts = None if tokenizer is None else decoded_texts(*outputs[:2], stop_ids, tokenizer)
    return Generation(*outputs, texts)
