"""Text or token ids in, the best of many texts out."""

import dataclasses
from typing import Any

import numpy as np

from keras_arch.generation.beam_decode import BeamDecode
from keras_arch.generation.beam_search import check_search
from keras_arch.generation.programs import prepare
from keras_arch.generation.request import read_request
from keras_arch.generation.results import Generation
from keras_arch.generation.samplers import Greedy


@dataclasses.dataclass(frozen=True, eq=False)
class BeamGeneration(Generation):
    """The n best hypotheses after each prompt, best first; numpy arrays.

    Token ids, validity and log-probabilities are `[B, n, N]`, and texts are n to a row.

    Attributes:
        totals: float32 `[B, n]`, the sum of the tokens' log-probabilities; minus infinity where a
            row has fewer than n hypotheses.
        scores: float32 `[B, n]`, what they are ordered by: the totals after the length penalty.
    """

    totals: Any
    scores: Any


def generate_beams(
    model,
    prompts,
    max_new_tokens,
    search,
    stop_ids=(),
    tokenizer=None,
    valid=None,
    bos_id=None,
    context=None,
):
    """Generates by beam search: more probable texts than the most probable token at each step.

    ```
    search = BeamSearch(4, length_penalty=0.6, n_best=2)
    ka.generation.generate_beams(model, [[5, 3]], 20, search, stop_ids=[0]).token_ids  # [1, 2, 20]
    ```

    Each beam has a row of its own in the model's state; the prompt is read once for all of them,
    and what a layer makes from the context alone stays one for all of them.

    Args:
        model: A functional `keras.Model` from `token_ids` and `valid` to logits `[B, T, V]`.
        prompts: As in `generate`; so are all arguments but `search`.
        max_new_tokens: Most tokens to generate for each prompt.
        search: A `BeamSearch`.
        stop_ids: Ids that end a hypothesis.
        tokenizer: A tokenizer of `keras_arch.text`.
        valid: bool `[B, T]`, True = real token; pads may stand on either side.
        bos_id: What an empty prompt starts from; default the tokenizer's "begin" or "end" id.
        context: What the model's other inputs get, by name, a row for each prompt.

    Returns:
        A `BeamGeneration`.

    Raises:
        ValueError: Before any compute, for what `generate` refuses; or if the search is no
            `BeamSearch`, wider than the vocabulary, or asks for a coverage that the model has not.
    """
    prepared = prepare(model)
    check_search(search, prepared.stepper, model.output.shape[-1])
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
    loop = BeamDecode(prepared.stepper, request.buffer, search)
    outputs = request.run(prepared.loops, loop)
    if not request.rows:
        outputs = [np.zeros((0, search.n_best, max_new_tokens), x.dtype) for x in outputs]
        outputs += [np.zeros((0, search.n_best), "float32")] * 2
    token_ids, valid, log_probabilities, totals, scores = outputs
    texts = zip(token_ids, valid, strict=True)
    texts = None if tokenizer is None else [request.texts(*rows) for rows in texts]
    return BeamGeneration(token_ids, valid, log_probabilities, texts, totals, scores)
