"""What a user asks for, checked before any compute and padded to shapes that programs share."""

import dataclasses
from typing import Any

import numpy as np
from keras import ops, tree

from keras_arch.checks import check_positive
from keras_arch.generation.buckets import bucket, padded_length
from keras_arch.generation.context import read_context
from keras_arch.generation.prompts import check_request, check_rows, pad_left, prompt_rows


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
    """A request that goes with its model.

    A search is a loop for `backend.compile_loop` and the few lines that make it of a request:

    ```
    request = read_request(prepare(model).stepper, prompts, max_new_tokens, ...)
    loop = MySearch(stepper, request.buffer, ...)
    token_ids, valid, log_probabilities = request.run(prepare(model).loops, loop, seed)
    ```

    Attributes:
        rows: The prompts as lists of token ids, none empty.
        max_new_tokens: Most tokens to generate for each.
        stop_ids: Ids that end a row.
        context: Dict of numpy arrays for the context inputs, padded.
        context_length: Most slots that prompts are padded to; None means no limit.
        tokenizer: The tokenizer, if there is one.
    """

    rows: list
    max_new_tokens: int
    stop_ids: Any
    context: dict
    context_length: int | None
    tokenizer: Any

    @property
    def buffer(self):
        """N, the columns of a loop's results: `max_new_tokens` rounded up to a bucket."""
        return bucket(self.max_new_tokens)

    def run(self, programs, loop, *more):
        """Runs a loop's program for this request.

        Args:
            programs: The `Programs` that keep it.
            loop: Hashable by all that its program depends on besides shapes; has `variables`, the
                Keras variables that it reads, and `begin(token_ids, valid, limit, stop_ids,
                context, *more)`, see `Decode.begin`. The first three outputs of its `finish` are
                token ids, validity, log-probabilities or None, `[..., N]`.
            *more: Numpy arrays.

        Returns:
            The outputs as numpy, the first three cut to `[..., max_new_tokens]`. Without prompts
            only those, `[0, max_new_tokens]`.
        """
        if not self.rows:
            return [np.zeros((0, self.max_new_tokens), t) for t in ("int32", "bool", "float32")]
        # The loops read the last token apart, so there are two slots at least.
        slots = max(2, padded_length(max(map(len, self.rows)), self.context_length))
        limit, stop_ids = np.int32(self.max_new_tokens), np.asarray([*self.stop_ids], "int32")
        arguments = *pad_left(self.rows, slots), limit, stop_ids, self.context, *more
        key = loop, *map(np.shape, tree.flatten(arguments))
        outputs = programs.get(key, loop, loop.variables)(*arguments)
        outputs = [None if x is None else ops.convert_to_numpy(x) for x in outputs]
        first = [None if x is None else x[..., : self.max_new_tokens] for x in outputs[:3]]
        return [*first, *outputs[3:]]

    def texts(self, token_ids, valid):
        """Returns the text of each row `[B, N]` without its stop id; None without a tokenizer."""
        if self.tokenizer is None:
            return None
        keep = valid & ~np.isin(token_ids, [*self.stop_ids])
        rows = zip(token_ids, keep, strict=True)
        return [self.tokenizer.decode(row[k].tolist()) for row, k in rows]


def read_request(
    stepper,
    prompts,
    max_new_tokens,
    sampler,
    stop_ids=(),
    tokenizer=None,
    valid=None,
    bos_id=None,
    context=None,
):
    """Returns the `Request` that a user's arguments make; they are those of `generate`.

    Raises:
        ValueError: As `generate` says.
    """
    check_positive(max_new_tokens=max_new_tokens)
    bos_id = start_id(bos_id, tokenizer)
    check_request(stepper, tokenizer, sampler, stop_ids, bos_id)
    rows = prompt_rows(prompts, valid, tokenizer, bos_id)
    check_rows(rows, max_new_tokens, stepper.vocabulary_size, stepper.context_length)
    context = read_context(stepper, context, len(rows))
    count, length = int(max_new_tokens), stepper.context_length  # NumPy's integers are integers.
    return Request(rows, count, stop_ids, context, length, tokenizer)


def start_id(bos_id, tokenizer):
    """Returns what an empty row starts from: `bos_id`, or else the tokenizer's own id."""
    return tokenizer.start_id if bos_id is None and tokenizer is not None else bos_id


def seed_pair(seed):
    """Returns int32 `[2]` from a seed of up to 64 bits, or from fresh entropy."""
    if seed is None:
        return np.random.SeedSequence().generate_state(2, "uint32").view("int32")
    # NumPy's integers are integers.
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise ValueError(f"seed must be an integer in [0, 2^64); received seed={seed!r}.")
    seed = int(seed)
    return np.array([seed & 0xFFFFFFFF, seed >> 32], "uint32").view("int32")
