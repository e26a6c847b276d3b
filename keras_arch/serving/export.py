"""A SavedModel that takes text and returns text, with tokenizer and cached decode loop inside."""

from keras_arch.checks import check_positive
from keras_arch.generation.beam_search import check_search
from keras_arch.generation.prompts import check_request
from keras_arch.generation.samplers import Greedy
from keras_arch.generation.stepper import Stepper
from keras_arch.serving.decoder import Decoder
from keras_arch.serving.module import TextModule
from keras_arch.serving.saving import new_version, save
from keras_arch.serving.translation import SOURCE_INPUTS, TranslationModule


def export(
    model,
    path,
    tokenizer,
    max_new_tokens=128,
    sampler=None,
    stop_ids=(),
    bos_id=None,
    version=1,
    search=None,
    source_tokenizer=None,
    source_edges=((), ()),
):
    """Writes the model folder `path/version/` that TensorFlow Serving loads.

    Everything in it is operations of TensorFlow's core and of tensorflow_text: the process that
    serves it needs neither keras_arch nor Keras nor Python. B texts of any lengths at once, by
    these signatures:

    * `serving_default`: `text` string `[B]`. Returns `text` string `[B]`, what the model continues
      each with, as `ka.generate(...).texts`; `token_ids` int32 and `log_probabilities` float32
      `[B, N]`, as `ka.generate` returns them, N being `max_new_tokens`; `token_count` int32 `[B]`:
      the new tokens of a row, after which it holds zeros. With a `search` it is the best that
      `generate_beams` finds, with `score` float32 `[B]`.
    * `generate`: besides `text`, the scalars `seed` (int64; -1: none, so draws differ between
      calls; else as in `ka.generate`), `max_new_tokens` (int32, at most that of the export) and
      `temperature` (float32; 0: greedy). Their defaults are part of the signature.
    * `search`, with a `search`: besides `text`, the scalars `width` (int32, at most that of the
      export) and `max_new_tokens`, with defaults.
    * `score`: `text`. Returns `log_likelihood` float32, `token_count` int32 and `perplexity`
      float32 `[B]`, as `ka.score` with its default stride; empty texts have 0 tokens.
    * `logits`: `token_ids` int32 and `valid` bool `[B, T]`. Returns `logits` float32 `[B, T, V]`.

    Of a model with the context inputs `source_ids` and `source_valid`, `text` is the source and
    what is returned the target; `score` takes `target` string `[B]` as well, and `logits` the
    context inputs. If it attends to the source, there is one signature more:

    * `attention`, with a `search`: takes and returns what `search` does, and `attention` float32
      `[B, N, S]`, where the decoder looked for each token, with `tokens` string `[B, N]` and
      `source_tokens` string `[B, S]`; of several layers, `attention_` with the layer's name.

    `serving_default` has one input, because the REST interface of TensorFlow Serving takes plain
    lists for one input only and knows no defaults; gRPC does.

    A text that is with the new tokens too long for the context, or empty without a `bos_id`, is
    answered with an error; so is a source that is empty or too long.

    Args:
        model: A functional model; see `keras_arch.generation.Stepper`.
        path: The model folder.
        tokenizer: A tokenizer of `keras_arch.text`.
        max_new_tokens: Most tokens to generate.
        sampler: `Greedy()` (default) or a `Sample`.
        stop_ids: Ids that end a row.
        bos_id: What an empty text, or a target, starts from, and what every text is scored after;
            default the tokenizer's "begin" or "end" id.
        version: The version's number.
        search: A `BeamSearch` with `n_best=1`. The graph holds a program for each width up to its
            own.
        source_tokenizer: Reads the source; default `tokenizer`.
        source_edges: The ids that each source begins with, and those that it ends with, as those
            the model was trained on did: `([], [end])` for T5, `([begin], [end])` for BART.

    Returns:
        The path of the version's folder.

    Raises:
        ValueError: If an argument is out of range or the model cannot be decoded; if it has other
            context inputs; or if it runs an operation that servers may lack: a layer's own, by
            Python or for XLA. No folder is left.
        FileExistsError: If the version exists: servers take a version as final.
        RuntimeError: If Keras runs on another backend than TensorFlow.
    """
    folder = new_version(path, version)
    check_positive(max_new_tokens=max_new_tokens)
    stepper, sampler = Stepper(model), Greedy() if sampler is None else sampler
    bos_id = tokenizer.start_id if bos_id is None else bos_id
    check_request(stepper, tokenizer, sampler, stop_ids, bos_id)
    _check_room(max_new_tokens, stepper.context_length)
    _check_search(search, stepper, model.output.shape[-1])
    decoder = Decoder(stepper, max_new_tokens, sampler, search, [*stop_ids])
    if stepper.context_inputs:
        source_tokenizer = source_tokenizer or tokenizer
        _check_source(stepper, source_tokenizer, bos_id)
        edges = _checked_edges(source_edges, source_tokenizer)
        module = TranslationModule(decoder, tokenizer, bos_id, source_tokenizer, edges)
    elif source_tokenizer is not None or any(map(len, source_edges)):
        raise ValueError(
            "source_tokenizer and source_edges need a model with the inputs 'source_ids' and "
            f"'source_valid'; received one without, source_tokenizer={source_tokenizer!r} and "
            f"source_edges={source_edges!r}."
        )
    else:
        module = TextModule(decoder, tokenizer, bos_id)
    save(module, folder)
    return folder


def _check_search(search, stepper, vocabulary_size):
    if search is None:
        return
    check_search(search, stepper, vocabulary_size)
    if search.n_best != 1:
        raise ValueError(
            f"search must have n_best=1 to be exported; received n_best={search.n_best}."
        )


def _check_source(stepper, tokenizer, bos_id):
    """Raises ValueError if a source text is not what the model takes beside `token_ids`."""
    if sorted(stepper.context_inputs) != sorted(SOURCE_INPUTS):
        raise ValueError(
            f"model must take, besides token_ids and valid, nothing or {SOURCE_INPUTS}; received "
            f"one that takes {stepper.context_inputs}."
        )
    size = stepper.vocabulary_of("source_ids")
    if size is not None and tokenizer.vocabulary_size != size:
        raise ValueError(
            "source_tokenizer must have the vocabulary of the model's source; received one of "
            f"{tokenizer.vocabulary_size} tokens and a source of {size}."
        )
    if bos_id is None:
        raise ValueError(
            "bos_id must be given: a target starts from it, and the tokenizer has neither a "
            "'begin' nor an 'end' id; received bos_id=None."
        )


def _checked_edges(source_edges, tokenizer):
    """Returns the ids before and behind a source, two lists."""
    size = tokenizer.vocabulary_size
    edges = [list(ids) for ids in source_edges]
    if len(edges) != 2 or not all(0 <= i < size for ids in edges for i in ids):
        raise ValueError(
            "source_edges must be two lists of ids of the source's vocabulary, "
            f"[0, {size}); received source_edges={source_edges!r}."
        )
    return edges


def _check_room(max_new_tokens, context_length):
    if context_length is not None and max_new_tokens >= context_length:
        raise ValueError(
            "max_new_tokens must leave room for a prompt; received "
            f"max_new_tokens={max_new_tokens}, context_length={context_length}."
        )
