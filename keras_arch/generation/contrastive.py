"""Contrastive search: probable tokens that are not like what stands there already."""

import numpy as np

from keras_arch.checks import check_positive
from keras_arch.generation.contrast import Contrast
from keras_arch.generation.programs import prepare
from keras_arch.generation.request import read_request
from keras_arch.generation.results import Generation
from keras_arch.generation.samplers import Greedy


def generate_contrastive(
    model,
    prompts,
    max_new_tokens,
    k=4,
    alpha=0.6,
    stop_ids=(),
    tokenizer=None,
    valid=None,
    bos_id=None,
    return_logprobs=False,
    context=None,
):
    """Generates by contrastive search: the same tokens at each call, less repetitive than greedy.

    Of the k most probable tokens it takes the one with the largest `(1 - alpha) * probability -
    alpha * likeness`. Likeness is the largest cosine between the token's hidden state, which the
    model's head would read, and those of all tokens before it, the prompt's included.
    Source: Su et al. 2022, section 3.2.

    Args:
        model: A functional `keras.Model` from `token_ids` and `valid` to logits `[B, T, V]`.
        prompts: As in `generate`; so are all arguments but `k` and `alpha`.
        max_new_tokens: Most tokens to generate for each prompt.
        k: Candidates for each token; 1 is greedy search.
        alpha: Weight of the likeness, in [0, 1]; 0 is greedy search.
        stop_ids: Ids that end a row.
        tokenizer: A tokenizer of `keras_arch.text`.
        valid: bool `[B, T]`, True = real token; pads may stand on either side.
        bos_id: What an empty prompt starts from; default the tokenizer's "begin" or "end" id.
        return_logprobs: Whether to return the tokens' log-probabilities.
        context: What the model's other inputs get.

    Returns:
        A `Generation`.

    Raises:
        ValueError: Before any compute, for what `generate` refuses; if `k` is not positive or
            `alpha` outside [0, 1]; or if the model has no head of its own (see `Stepper.hidden`).
    """
    check_positive(k=k)
    if not isinstance(alpha, int | float) or not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must be in [0, 1]; received alpha={alpha!r}.")
    prepared = prepare(model)
    prepared.stepper.check_head()
    request = read_request(
        prepared.stepper,
        prompts,
        max_new_tokens,
        Greedy(),
        stop_ids,
        tokenizer,
        valid,
        bos_id,
        context,
    )
    loop = Contrast(prepared.stepper, request.buffer, min(k, model.output.shape[-1]))
    token_ids, valid, log_probabilities = request.run(prepared.loops, loop, np.float32(alpha))
    return Generation(
        token_ids,
        valid,
        log_probabilities if return_logprobs else None,
        request.texts(token_ids, valid),
    )
