import numpy as np
import pytest
from keras import ops

from keras_arch.layers import attention_ops
from tests.layers import rows
from tests.references import attention as reference


@pytest.mark.parametrize("segment_ids", [None, rows.SEGMENTS])
@pytest.mark.parametrize("window", [None, 2])
def test_the_masks_together_equal_the_reference(segment_ids, window):
    positions = ops.convert_to_tensor(rows.POSITIONS)
    ids = None if segment_ids is None else ops.convert_to_tensor(segment_ids)
    segments = attention_ops.segments(ops.convert_to_tensor(rows.VALID), ids)
    allow = ops.logical_and(
        attention_ops.same_segment(segments, segments),
        attention_ops.causal(rows.TIME, rows.TIME, 0),
    )
    if window is not None:
        allow = ops.logical_and(allow, attention_ops.within_window(positions, positions, window))
    allow = ops.convert_to_numpy(allow)
    for b, t, s in np.ndindex(*allow.shape):
        own = None if segment_ids is None else segment_ids[b]
        expected = reference.allowed(t, s, rows.VALID[b], rows.POSITIONS[b], own, window=window)
        # A pad may be allowed keys: its host selects it out.
        if rows.VALID[b, t]:
            assert allow[b, t, s] == expected


def test_causal_starts_at_the_cursor():
    found = ops.convert_to_numpy(attention_ops.causal(2, 5, 2))
    np.testing.assert_array_equal(found, [[[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]])


def test_split_and_merge_heads_are_inverse():
    x = rows.normal(2, 3, 8)
    split = rows.run(attention_ops.split_heads, x, 4)
    assert split.shape == (2, 4, 3, 2)
    np.testing.assert_array_equal(split[1, 2], x[1, :, 4:6])
    np.testing.assert_array_equal(rows.run(attention_ops.merge_heads, split), x)


def test_split_and_merge_batch_are_inverse():
    x = rows.normal(2, 3, 4, 5)
    merged = rows.run(attention_ops.merge_batch, x)
    np.testing.assert_array_equal(merged, x.reshape(6, 4, 5))
    np.testing.assert_array_equal(rows.run(attention_ops.split_batch, merged, 3), x)


@pytest.mark.parametrize("key_value_heads", [1, 2, 4])
def test_query_heads_share_key_heads_in_order(key_value_heads):
    query, key = rows.normal(2, 4, 3, 5), rows.normal(2, key_value_heads, 6, 5, seed=1)
    merged = rows.run(attention_ops.merge_batch, key)
    scores = rows.run(attention_ops.attention_scores, query, merged, key_value_heads, 0.5)
    mixed = rows.run(attention_ops.mix_values, scores, merged, key_value_heads)
    for b, n in np.ndindex(2, 4):
        shared = key[b, n // (4 // key_value_heads)]
        np.testing.assert_allclose(scores[b, n], 0.5 * query[b, n] @ shared.T, atol=1e-5)
        np.testing.assert_allclose(mixed[b, n], scores[b, n] @ shared, atol=1e-5)


def test_the_softmax_of_one_key_is_one():
    allow = np.ones((1, 1, 1), "bool")
    found = rows.run(attention_ops.masked_softmax, rows.normal(1, 1, 1, 1), allow)
    np.testing.assert_array_equal(found, 1.0)


def test_the_softmax_takes_huge_scores():
    scores = np.array([1e30, -1e30, 3e4], "float32").reshape(1, 1, 1, 3)
    allow = np.array([False, True, True]).reshape(1, 1, 3)
    found = rows.run(attention_ops.masked_softmax, scores, allow)
    np.testing.assert_array_equal(found.ravel(), [0, 0, 1])


@pytest.mark.skipif(not attention_ops.can_fuse(), reason="a kernel of PyTorch's")
@pytest.mark.parametrize("with_bias", [False, True])
def test_fused_attention_is_the_three_steps(with_bias):
    import torch

    rng = np.random.default_rng(0)
    query = torch.tensor(rng.normal(size=(2, 4, 5, 8)), dtype=torch.float32, requires_grad=True)
    key, value = (torch.tensor(rng.normal(size=(4, 6, 8)), dtype=torch.float32) for _ in range(2))
    allow = torch.tensor(rng.random((2, 5, 6)) < 0.6)
    allow[0, 1] = False
    bias = torch.tensor(rng.normal(size=(1, 4, 5, 6)), dtype=torch.float32) if with_bias else None
    fused = attention_ops.fused_attention(query, key, value, 2, 0.3, allow, bias)
    scores = attention_ops.attention_scores(query, key, 2, 0.3)
    weights = attention_ops.masked_softmax(scores if bias is None else scores + bias, allow)
    expected = attention_ops.mix_values(weights, value, 2).detach().numpy()
    seen = allow.any(dim=-1).numpy()
    got = fused.detach().numpy()
    np.testing.assert_allclose(
        got.swapaxes(1, 2)[seen], expected.swapaxes(1, 2)[seen], rtol=0, atol=1e-5
    )
    assert np.isfinite(got).all()
    fused.sum().backward()
    assert torch.isfinite(query.grad).all()
