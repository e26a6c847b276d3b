"""What a model of pairs can do: its predictions, BLEU by length of the source, where it looks."""

import time

import numpy as np
import sacrebleu
from parts.table import write_table

import keras_arch as ka

#: Words of a source: from, to.
LENGTHS = ((1, 9), (10, 12), (13, 15), (16, None))
ROWS = 100


def evaluate(model, tokenizer, pairs, search, max_new_tokens, source_end=()):
    """Returns the figures for the report, and the predictions by search, in the pairs' order.

    Args:
        model: A trained model from `source_ids`, `source_valid`, `token_ids` and `valid`.
        tokenizer: Of sources and targets, with the roles "begin" and "end".
        pairs: `keras_arch.text.Pairs` with the references.
        search: A `BeamSearch`.
        max_new_tokens: Most tokens of a prediction.
        source_end: The ids that each source ends with.
    """
    predictions, seconds = {}, {}
    for name, how in (("greedy", None), (f"beam {search.width}", search)):
        begin = time.perf_counter()
        sources = [[*tokenizer.encode(text), *source_end] for text in pairs.sources]
        predictions[name] = predict(model, tokenizer, sources, max_new_tokens, how)
        seconds[name] = round(time.perf_counter() - begin, 3)
    bleu = sacrebleu.metrics.BLEU()
    figures = {
        "bleu": {
            name: round(bleu.corpus_score(texts, [pairs.targets]).score, 2)
            for name, texts in predictions.items()
        },
        "bleu_by_source_words": {
            name: bleu_by_length(texts, pairs) for name, texts in predictions.items()
        },
        "bleu_signature": str(bleu.get_signature()),
        "decode_seconds": seconds,
    }
    print_table(figures)
    return figures, predictions


def predict(model, tokenizer, sources, max_new_tokens, search=None):
    """Returns the texts a model makes of lists of ids, by a `BeamSearch` or else greedily."""
    # Rows of like length together: a batch takes as long as its longest row.
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    found = [""] * len(sources)
    for first in range(0, len(order), ROWS):
        rows = order[first : first + ROWS]
        batch = [sources[i] for i in rows]
        targets = predict_ids(model, tokenizer, batch, max_new_tokens, search)
        for i, target in zip(rows, targets, strict=True):
            found[i] = tokenizer.decode(without_end(tokenizer, target)).strip()
    return found


def predict_ids(model, tokenizer, sources, max_new_tokens, search=None):
    """Returns what a model makes of each list of ids: ids with the end, if it came to it."""
    options = {
        "prompts": [[tokenizer.special_ids["begin"]]] * len(sources),
        "max_new_tokens": max_new_tokens,
        "stop_ids": [tokenizer.special_ids["end"]],
        "context": {"source_ids": sources},
    }
    if search is None:
        generated = ka.generate(model, **options)
        ids, valid = generated.token_ids, generated.valid
    else:
        generated = ka.generation.generate_beams(model, search=search, **options)
        ids, valid = generated.token_ids[:, 0], generated.valid[:, 0]
    return [row[real].tolist() for row, real in zip(ids, valid, strict=True)]


def without_end(tokenizer, ids):
    """Returns the ids that are not the end."""
    return [token for token in ids if token != tokenizer.special_ids["end"]]


def draw_alignments(model, tokenizer, texts, search, max_new_tokens, folder):
    """Writes `alignment_1.png`, ...: which source tokens each token of a prediction attends to.

    Of several attending layers the last is drawn, and of its heads the mean.
    """
    for number, text in enumerate(texts, 1):
        source = tokenizer.encode(text)
        (target,) = predict_ids(model, tokenizer, [source], max_new_tokens, search)
        read = [tokenizer.special_ids["begin"], *target[:-1]]
        inputs = {"source_ids": np.array([source]), "token_ids": np.array([read])}
        inputs |= {"source_valid": np.ones((1, len(source)), bool)}
        inputs |= {"valid": np.ones((1, len(read)), bool)}
        *_, weights = ka.analysis.attention_weights(model, inputs).values()
        weights = weights.mean(axis=1) if weights.ndim == 4 else weights
        words = [[tokenizer.decode([token]) for token in row] for row in (source, target)]
        path = folder / f"alignment_{number}.png"
        ka.analysis.plot_alignment(weights[0], *words, path)


def bleu_by_length(texts, pairs):
    """Returns BLEU by the number of words in the source; groups without a pair are left out."""
    bleu = sacrebleu.metrics.BLEU(effective_order=True)
    scores = {}
    for low, high in LENGTHS:
        group = [
            (text, target)
            for text, source, target in zip(texts, *pairs, strict=True)
            if low <= len(source.split()) <= (high or len(source))
        ]
        if group:
            texts_of, targets_of = zip(*group, strict=True)
            name = f"{low}-{high}" if high else f"{low}-"
            scores[name] = round(bleu.corpus_score(texts_of, [targets_of]).score, 2)
    return scores


def print_table(figures):
    """Prints BLEU over all and by length."""
    groups = list(next(iter(figures["bleu_by_source_words"].values())))
    print(f"{'source words':<14}{'all':>8}" + "".join(f"{group:>8}" for group in groups))
    for name, score in figures["bleu"].items():
        by_length = figures["bleu_by_source_words"][name]
        print(f"{name:<14}{score:>8.2f}" + "".join(f"{by_length[g]:>8.2f}" for g in groups))
    print(figures["bleu_signature"])


def write_predictions(pairs, predictions, path):
    """Writes a table: a source, its reference and what was found instead, a line."""
    rows = zip(*pairs, *predictions.values(), strict=True)
    write_table(path, ["source", "reference", *predictions], rows)
