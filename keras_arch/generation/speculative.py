"""Speculative decoding: the tokens of a large model, with most of the steps made by a small one."""

import weakref
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_arch.checks import check_positive
from keras_arch.generation.generate import bucket, decoded_texts, seed_pair
from keras_arch.generation.programs import Programs
from keras_arch.generation.prompts import check_request, check_rows, pad_left, prompt_rows
from keras_arch.generation.samplers import Greedy
from keras_arch.generation.speculate import Speculation
from keras_arch.generation.states import check_rewind
from keras_arch.generation.stepper import Stepper
from keras_arch.layers.part import Part


class SpeculativeGeneration(NamedTuple):
    """What was generated after each prompt; numpy arrays `[B, N]`.

    Attributes:
        token_ids: int32; a row ends with its stop id, if it found one, and zeros.
        valid: bool, True = generated token.
        log_probabilities: float32, of each token by the model, in nats; None if not asked for.
        texts: The decoded rows without their stop ids, if there was a tokenizer.
        accepted: Drafted tokens that were accepted in a round, the mean of all rounds and rows. The
            model ran once for `accepted + 1` tokens.
    """

    token_ids: Any
    valid: Any
    log_probabilities: Any
    texts: list | None
    accepted: float


class Speculator:
    """The programs of a model and its draft model: one for each bucket of shapes.

    Args:
        model: A functional model; see `Stepper` for what it must be.
        draft: Another of the same vocabulary.
    """

    def __init__(self, model, draft):
        self.stepper, self.draft = Stepper(model), Stepper(draft)
        self.size = model.output.shape[-1]
        if draft.output.shape[-1] != self.size:
            raise ValueError(
                "draft must have the model's vocabulary; received a draft of "
                f"{draft.output.shape[-1]} tokens and a model of {self.size}."
            )
        for stepper in (self.stepper, self.draft):
            check_rewind(stepper)
            _check_chunks(stepper)
        self.programs = Programs()

    def check_rows(self, rows, max_new_tokens):
        """Raises ValueError if a row and the new tokens do not go with both models."""
        size = self.stepper.vocabulary_size
        check_rows(rows, max_new_tokens, size, self.stepper.context_length)
        try:
            check_rows(rows, max_new_tokens, size, self.draft.context_length)
        except ValueError as error:
            raise ValueError(f"of the draft model: {error}") from None

    def __call__(self, rows, max_new_tokens, drafted, sampler, stop_ids, seed):
        """Returns numpy `(token_ids, valid, log_probabilities, rounds, accepted)`.

        The first three are `[B, max_new_tokens]`, the others `[B]`.
        """
        token_ids, valid = pad_left(rows, self._prompt_slots(max(map(len, rows))))
        buffer = bucket(max_new_tokens)

        def run(token_ids, valid, limit, seed, stop_ids):
            return Speculation(
                self.stepper,
                self.draft,
                token_ids,
                valid,
                buffer,
                limit,
                drafted,
                self.size,
                sampler,
                seed,
                stop_ids,
            ).run()

        key = token_ids.shape, buffer, drafted, sampler, len(stop_ids)
        program = self.programs.get(key, run, self.stepper.variables + self.draft.variables)
        limit, stop_ids = np.int32(max_new_tokens), np.asarray(stop_ids, "int32")
        outputs = [
            ops.convert_to_numpy(x) for x in program(token_ids, valid, limit, seed, stop_ids)
        ]
        return [x[:, :max_new_tokens] for x in outputs[:3]] + outputs[3:]

    def _prompt_slots(self, longest):
        limits = [bucket(longest), self.stepper.context_length, self.draft.context_length]
        # The loop reads the last token apart, so there are two slots at least.
        return max(2, min(limit for limit in limits if limit is not None))


def _check_chunks(stepper):
    """Raises ValueError if tokens read together come out other than one by one."""
    for call in stepper.time_calls:
        for part in _parts_within(call.layer):
            if getattr(part, "depends_on_length", False):
                raise ValueError(
                    f"layer {call.layer.name!r} ({type(call.layer).__name__}) reads several tokens "
                    f"otherwise than one by one: its rotary angles depend on the length of the row "
                    f"({part.scaling})."
                )


def _parts_within(layer):
    yield layer
    for part in layer.parts() if isinstance(layer, Part) else ():
        yield from _parts_within(part)


# A cache that keeps nothing alive: an entry goes with its two models.
_speculators = weakref.WeakKeyDictionary()


def generate_speculative(
    model,
    draft,
    prompts,
    max_new_tokens,
    draft_tokens=4,
    sampler=None,
    stop_ids=(),
    seed=None,
    tokenizer=None,
    valid=None,
    bos_id=None,
    return_logprobs=False,
):
    """Generates what `generate` would with the model alone, in fewer of its steps.

    A small draft model proposes `draft_tokens` tokens at a time and the model checks them in one
    pass. Greedy tokens are the model's own; sampled ones have the model's own distribution, after
    the same filters, but are other ones than `generate` draws with the same seed.

    ```
    ka.generation.generate_speculative(model, draft, [[5, 3]], max_new_tokens=20).token_ids
    ```

    It pays where one pass over a few tokens costs about as much as over one (small batches), and
    the draft model is several times faster and agrees often: see `accepted` of the result.

    Args:
        model: A functional `keras.Model` from `token_ids` and `valid` to logits `[B, T, V]`.
        draft: A smaller one, of the same vocabulary.
        prompts: As in `generate`; so are all arguments but `draft_tokens`.
        max_new_tokens: Most tokens to generate for each prompt.
        draft_tokens: Tokens proposed in a round.
        sampler: `Greedy()` (default) or a `Sample`.
        stop_ids: Ids that end a row.
        seed: Integer; the same seed and prompts give the same tokens. None: others at each call.
        tokenizer: A tokenizer of `keras_arch.text`.
        valid: bool `[B, T]`, True = real token; pads may stand on either side.
        bos_id: What an empty prompt starts from; default the tokenizer's "begin" or "end" id.
        return_logprobs: Whether to return the tokens' log-probabilities by the model.

    Returns:
        A `SpeculativeGeneration`.

    Raises:
        ValueError: Before any compute, for what `generate` refuses, of either model; if the two
            vocabularies differ in size; or if a layer of either model cannot forget tokens.
    """
    check_positive(max_new_tokens=max_new_tokens, draft_tokens=draft_tokens)
    seed = seed_pair(seed)
    if bos_id is None and tokenizer is not None:
        bos_id = tokenizer.start_id
    sampler = Greedy() if sampler is None else sampler
    drafts = _speculators.setdefault(model, weakref.WeakKeyDictionary())
    if draft not in drafts:
        drafts[draft] = Speculator(model, draft)
    speculator = drafts[draft]
    check_request(speculator.stepper, tokenizer, sampler, stop_ids, bos_id)
    rows = prompt_rows(prompts, valid, tokenizer, bos_id)
    speculator.check_rows(rows, max_new_tokens)
    if rows:
        outputs = speculator(rows, max_new_tokens, draft_tokens, sampler, stop_ids, seed)
    else:
        outputs = [np.zeros((0, max_new_tokens), t) for t in ("int32", "bool", "float32")]
        outputs += [np.zeros((0,), "int32")] * 2
    token_ids, valid, log_probabilities, rounds, accepted = outputs
    return SpeculativeGeneration(
        token_ids,
        valid,
        log_probabilities if return_logprobs else None,
        None if tokenizer is None else decoded_texts(token_ids, valid, stop_ids, tokenizer),
        float(accepted.sum() / max(rounds.sum(), 1)),
    )
