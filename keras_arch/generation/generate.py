"""Text or token ids in, generated text or token ids out."""

from keras_arch.generation.decode import Decode
from keras_arch.generation.programs import prepare
from keras_arch.generation.request import read_request, seed_pair
from keras_arch.generation.results import Generation
from keras_arch.generation.samplers import Greedy


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
    context=None,
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
        context: What the model's other inputs get, by name, a row for each prompt: arrays; or lists
            of ids of any lengths for an input `source_ids` with a `source_valid`, whatever their
            first word is. Padded lengths share programs, as those of prompts do.

    Returns:
        A `Generation`.

    Raises:
        ValueError: Before any compute, if a prompt is empty without `bos_id`, has an id outside the
            vocabulary, or is with `max_new_tokens` longer than the model's context; if tokenizer,
            sampler, stop ids, `bos_id` or context do not go with the model; or if the model cannot
            be decoded (see `Stepper`).
    """
    seed = seed_pair(seed)
    sampler = Greedy() if sampler is None else sampler
    prepared = prepare(model)
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
    loop = Decode(prepared.stepper, request.buffer, sampler, return_logprobs)
    token_ids, valid, log_probabilities = request.run(prepared.loops, loop, seed)
    return Generation(
        token_ids,
        valid,
        log_probabilities if return_logprobs else None,
        request.texts(token_ids, valid),
    )
