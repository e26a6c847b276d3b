"""From prompts to new tokens, inside a TensorFlow graph."""

import dataclasses
import functools
from typing import Any, NamedTuple

import tensorflow as tf

from keras_arch.backend import run_loop
from keras_arch.generation.beam_decode import BeamDecode
from keras_arch.generation.decode import Decode
from keras_arch.serving.rows import check


class Prompts(NamedTuple):
    """What rows are generated after.

    Attributes:
        token_ids: int32 `[B, P]`, on the right; P at least 2.
        valid: bool `[B, P]`.
        context: Dict of tensors for the model's context inputs.
    """

    token_ids: Any
    valid: Any
    context: dict


class Found(NamedTuple):
    """New tokens.

    Attributes:
        token_ids: int32 `[B, N]`, zeros after a row's end.
        valid: bool `[B, N]`.
        log_probabilities: float32 `[B, N]`.
        scores: float32 `[B]`, what beam search orders by; None of tokens that were sampled.
    """

    token_ids: Any
    valid: Any
    log_probabilities: Any
    scores: Any


@dataclasses.dataclass(frozen=True)
class Decoder:
    """Runs the loops of an export.

    Attributes:
        stepper: The model's `Stepper`.
        max_new_tokens: N, most tokens to generate.
        sampler: A `Greedy` or `Sample`.
        search: A `BeamSearch` with `n_best=1`, or None.
        stop_ids: List of ids that end a row.
    """

    stepper: Any
    max_new_tokens: int
    sampler: Any
    search: Any
    stop_ids: list

    @property
    def widths(self):
        """The widths a request may ask for: each a program of its own in the graph."""
        return range(self.search.groups, self.search.width + 1, self.search.groups)

    def run_sampler(self, prompts, limit, seed, sampler):
        """Returns what is `Found` by a sampler: at most `limit` tokens of each row."""
        loop = Decode(self.stepper, self.max_new_tokens, sampler, return_logprobs=True)
        return Found(*self._run(loop, prompts, limit, seed), None)

    def run_search(self, prompts, limit, width):
        """Returns the best that is `Found` by beam search.

        Args:
            prompts: `Prompts`.
            limit: int32 scalar, at most N.
            width: int32 scalar, one of `widths`.
        """
        *columns, _, scores = (x[:, 0] for x in self._searched(*prompts, limit, width))
        return Found(*columns, scores)

    @functools.cached_property
    def _searched(self):
        """The programs of all widths, as a function that all signatures share."""

        def search(token_ids, valid, context, limit, width):
            def run(width):
                options = dataclasses.replace(self.search, width=width)
                loop = BeamDecode(self.stepper, self.max_new_tokens, options)
                return self._run(loop, Prompts(token_ids, valid, context), limit)

            branches = [lambda w=w: run(w) for w in self.widths]
            return tf.switch_case(width // self.search.groups - 1, branches)

        return tf.function(search, autograph=False)

    def check_width(self, width):
        """Returns an operation that fails for a width, int32 scalar, that is none of `widths`."""
        groups, most = self.search.groups, self.search.width
        steps = f" and a multiple of {groups}, its groups," if groups > 1 else ""
        return check(
            (width >= groups) & (width <= most) & (width % groups == 0),
            f"width must be from {groups} to {most}, the most that was exported,{steps} received "
            "width=",
            width,
        )

    def _run(self, loop, prompts, limit, *more):
        stops = tf.constant(self.stop_ids, tf.int32)
        token_ids, valid, context = prompts
        return run_loop(loop, token_ids, valid, limit, stops, context, *more)
