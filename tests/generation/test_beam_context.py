"""Beam search of models with a source."""

import dataclasses

import numpy as np
import pytest

import keras_arch as ka
from keras_arch.generation import BeamSearch, generate_beams
from tests.contracts.tiny import CONFIGS, build
from tests.generation import encoder_decoder
from tests.generation.beams import check, following, small
from tests.references.beam_search import beam_search

ROWS = [[1, 2], [3], [5]]


def own(context, i):
    """Returns the context of row `i` alone."""
    return {name: x[i : i + 1] for name, x in context.items()}


@pytest.mark.parametrize(
    "make", [encoder_decoder.build, lambda: build(CONFIGS["t5"])], ids=["composed", "t5"]
)
def test_the_context_is_shared_by_the_beams_of_a_row(make, monkeypatch):
    rows_seen, step = set(), ka.layers.CrossAttention.step

    def watched(layer, x, *, state, cursor):
        rows_seen.add(state["memory"]["valid"].shape[0])
        return step(layer, x, state=state, cursor=cursor)

    model, context = make(), encoder_decoder.padded()
    with monkeypatch.context() as patch:
        patch.setattr(ka.layers.CrossAttention, "step", watched)
        search = BeamSearch(3, 0.6, n_best=3)
        found = generate_beams(model, ROWS, 6, search, stop_ids=[30], context=context)
    assert max(rows_seen) == len(ROWS)  # tiled, it would be three times as many
    for i, row in enumerate(ROWS):
        run = following(model, own(context, i))
        check(found, i, beam_search(run, row, 6, 3, [30], 0.6))


@pytest.mark.parametrize("attention", ["additive", "local"])
def test_what_is_not_covered_costs(attention):
    more = {"attention": "local", "window": 1} if attention == "local" else {}
    model = build(dataclasses.replace(CONFIGS["attention_seq2seq"], **more))
    context, beta = encoder_decoder.padded(), 0.4
    # So few tokens that no source is read in full.
    plain, search = (BeamSearch(3, 0.6, b, n_best=3) for b in (0.0, beta))
    found = generate_beams(model, ROWS, 3, search, stop_ids=[30], context=context)
    for i, row in enumerate(ROWS):
        inputs = own(context, i)

        def bonus(tokens, row=row, inputs=inputs):
            # Wu et al. 2016, equation 14, by the weights of the whole model.
            read = np.array([[*row, *tokens[:-1]]])
            inputs = {"token_ids": read, "valid": np.ones(read.shape, bool), **inputs}
            (weights,) = ka.analysis.attention_weights(model, inputs).values()
            coverage = weights[0].sum(axis=0)[inputs["source_valid"][0]]
            return beta * np.log(np.clip(coverage, 1e-6, 1.0)).sum()

        run = following(model, inputs)
        check(found, i, beam_search(run, row, 3, 3, [30], 0.6, bonus=bonus))
    without = generate_beams(model, ROWS, 3, plain, stop_ids=[30], context=context)
    assert not np.allclose(found.scores, without.scores)


def test_coverage_without_attention_is_named():
    with pytest.raises(ValueError, match="coverage_penalty needs a model with one Attention"):
        generate_beams(small("gpt2"), [[1]], 4, BeamSearch(2, coverage_penalty=0.2))
