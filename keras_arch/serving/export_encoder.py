"""A SavedModel that takes text and returns what an encoder with a head says of it."""

from keras_arch.checks import check_positive
from keras_arch.layers.positions import shortest_context
from keras_arch.models.encoder_only import TOKENS
from keras_arch.serving.encoder_heads import head_of, layers_of
from keras_arch.serving.encoder_rows import RowLayout
from keras_arch.serving.saving import new_version, save


def export_encoder(
    model,
    path,
    tokenizer,
    labels=None,
    top=None,
    stride=None,
    longest=None,
    between=1,
    version=1,
):
    """Writes the model folder `path/version/` that TensorFlow Serving loads.

    As of what `export` writes, everything in it is operations of TensorFlow's core and of
    tensorflow_text. `serving_default` takes B texts of any lengths at once. What it returns the
    model's head decides:

    * `sentence_embedding`: from `text` string `[B]` to `vector` float32 `[B, D]`.
    * `pair_similarity`: from `text` and `other_text` to `similarity` float32 `[B]`.
    * `sequence_classification`: from `text` to `probabilities` float32 `[B, C]` and `label` string
      `[B]`, the name of the greatest.
    * `token_classification`: from `text`, for each of its words as the tokenizer parts them, `tag`
      string, `probability` float32, `start` and `end` int32 `[B, W]`, told by the word's first
      token; and `word_count` int32 `[B]`, after which a row holds "" and 0.
    * `span_answers`: from `question` and `text` to `answer` string, `start` and `end` int32,
      `score` and `score_of_none` float32 `[B]`, as `keras_arch.objectives.best_answer` finds them
      in `answer_windows`, all of which are read at once. In a text without tokens the answer is
      "", and its score the lowest float.
    * `masked_lm`: from `text`, which may name special tokens, to `tokens` string, `token_ids` int32
      and `probabilities` float32 `[B, M, top]`, as `ka.fill_mask`; and `mask_count` int32 `[B]`,
      after which a row holds "" and 0.

    `start` and `end` count the characters (code points) of `text` before a word or answer, and up
    to its end: in Python it is `text[start:end]`.

    A row begins with the tokenizer's classification (or begin) token, and each text ends with its
    separator (or end). Of a text that has no room in the model's context the end is left out: it
    gets no tags. A question is cut to half of the context. A text with masks that is too long, or
    one without a mask, is answered with an error.

    Args:
        model: A functional model with one of these heads.
        path: The model folder.
        tokenizer: A tokenizer of `keras_arch.text`; for tags and answers one that can `locate`.
        labels: Names of the classes; for classification.
        top: Fillings for each mask; default 5.
        stride: Tokens from a window's begin to the next one's; default half of what the longest
            question leaves a window.
        longest: Most tokens of an answer; default 30.
        between: Separators between a question and its text; RoBERTa has 2.
        version: The version's number.

    Returns:
        The path of the version's folder.

    Raises:
        ValueError: If the model has no such head, an argument is out of range or for another head,
            or the tokenizer has not the vocabulary or the special tokens; or if the model runs an
            operation that servers may lack. No folder is left.
        FileExistsError: If the version exists: servers take a version as final.
        RuntimeError: If Keras runs on another backend than TensorFlow.
    """
    folder = new_version(path, version)
    check_positive(between=between)
    head = _checked_head(model)
    options = {"labels": labels, "top": top, "stride": stride, "longest": longest}
    options = {name: value for name, value in options.items() if value is not None}
    for name in options.keys() - set(head.options):
        raise ValueError(
            f"{name} is for another head than the model's, {head.__name__}; received "
            f"{name}={options[name]!r}."
        )
    layout = _layout([*layers_of(model)], tokenizer, between)
    save(head(model, tokenizer, layout, **options), folder)
    return folder


def _checked_head(model):
    head = head_of(model)
    if head is None:
        raise ValueError(
            "model must have a head of keras_arch.models (sentence_embedding, pair_similarity, "
            "sequence_classification, token_classification, span_answers, masked_lm); received one "
            f"from {[x.name for x in model.inputs]} to {model.output}. Decoders are exported by "
            "keras_arch.serving.export."
        )
    return head


def _layout(layers, tokenizer, between):
    for size in (layer.vocabulary_size for layer in layers if layer.name == TOKENS):
        if tokenizer.vocabulary_size != size:
            raise ValueError(
                "the tokenizer must have the model's vocabulary; received a tokenizer of "
                f"{tokenizer.vocabulary_size} tokens and a model of {size}."
            )
    first, separator = tokenizer.edge_ids
    if first is None or separator is None:
        raise ValueError(
            "tokenizer must have a classification or begin token and a separator or end token; "
            f"received one with {sorted(tokenizer.special_ids)}."
        )
    return RowLayout(first, separator, between, shortest_context(layers))
