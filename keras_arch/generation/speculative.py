"""Speculative decoding: the tokens of a large model, with most of the steps made by a small one."""

import dataclasses

from keras_arch.checks import check_positive
from keras_arch.generation.programs import prepare
from keras_arch.generation.prompts import check_rows
from keras_arch.generation.request import read_request, seed_pair
from keras_arch.generation.results import Generation
from keras_arch.generation.samplers import Greedy
from keras_arch.generation.speculate import Speculation
from keras_arch.generation.states import check_rewind
from keras_arch.layers.part import Part


@dataclasses.dataclass(frozen=True, eq=False)
class SpeculativeGeneration(Generation):
    """What was generated after each prompt.

    Attributes:
        accepted: Drafted tokens that were accepted in a round, the mean of all rounds and rows. The
            model ran once for `accepted + 1` tokens.
    """

    accepted: float


def _check_pair(stepper, draft, size, draft_size):
    """Raises ValueError if two models, given by steppers and sizes, cannot work together."""
    if draft_size != size:
        raise ValueError(
            "draft must have the model's vocabulary; received a draft of "
            f"{draft_size} tokens and a model of {size}."
        )
    if not {*draft.context_inputs} <= {*stepper.context_inputs}:
        raise ValueError(
            "draft must have no other inputs than the model; received "
            f"{sorted(draft.context_inputs)} and {sorted(stepper.context_inputs)}."
        )
    for each in (stepper, draft):
        check_rewind(each)
        _check_chunks(each)


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


def _within(request, draft):
    """Returns the request, its prompts padded within the draft's context, or raises ValueError."""
    limit = draft.context_length
    try:
        check_rows(request.rows, request.max_new_tokens, context_length=limit)
    except ValueError as error:
        raise ValueError(f"of the draft model: {error}") from None
    limits = [n for n in (limit, request.context_length) if n is not None]
    return dataclasses.replace(request, context_length=min(limits, default=None))


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
    context=None,
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
        context: What the model's other inputs get; the draft gets of it what it has inputs for.

    Returns:
        A `SpeculativeGeneration`.

    Raises:
        ValueError: Before any compute, for what `generate` refuses, of either model; if the two
            vocabularies differ in size; if the draft has other inputs than the model; or if a
            layer of either model cannot forget tokens.
    """
    check_positive(max_new_tokens=max_new_tokens, draft_tokens=draft_tokens)
    seed = seed_pair(seed)
    sampler = Greedy() if sampler is None else sampler
    prepared, drafter = prepare(model), prepare(draft).stepper
    size = model.output.shape[-1]
    _check_pair(prepared.stepper, drafter, size, draft.output.shape[-1])
    request = read_request(
        prepared.stepper,
        prompts,
        max_new_tokens,
        sampler,
        stop_ids,
        tokenizer,
        valid,
        bos_id,
        context,
    )
    request = _within(request, drafter)
    loop = Speculation(prepared.stepper, drafter, request.buffer, draft_tokens, size, sampler)
    outputs = request.run(prepared.loops_with(draft), loop, seed)
    token_ids, valid, log_probabilities, *accepted = outputs
    return SpeculativeGeneration(
        token_ids,
        valid,
        log_probabilities if return_logprobs else None,
        request.texts(token_ids, valid),
        float(sum(accepted)),
    )
