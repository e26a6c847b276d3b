import numpy as np
from keras import ops

from keras_arch.generation.candidates import Candidates, put


def candidates(logits, token_ids=None, size=5):
    logits = ops.convert_to_tensor(np.array(logits, "float32"))
    if token_ids is not None:
        token_ids = ops.convert_to_tensor(np.array(token_ids, "int32"))
    return Candidates(logits, size, token_ids)


def lists(kept):
    return ops.convert_to_numpy(kept.logits).tolist(), ops.convert_to_numpy(kept.ids()).tolist()


def test_equal_candidates_are_ordered_by_id():
    # Of 0.5 there are the ids 1, 3 and 4, which do not stand in that order.
    mixed = candidates([[0.5, 0.5, 2.0, 0.5]], [[4, 1, 0, 3]])
    assert lists(mixed.sort()) == ([[2.0, 0.5, 0.5, 0.5]], [[0, 1, 3, 4]])
    assert lists(mixed.top(2)) == ([[2.0, 0.5]], [[0, 1]])
    assert lists(mixed.top(9)) == lists(mixed.sort())
    assert lists(mixed.sort().top(3)) == ([[2.0, 0.5, 0.5]], [[0, 1, 3]])
    assert mixed.top(2).descending
    assert mixed.sort().sort() is not mixed


def test_what_is_forbidden_may_not_be_all():
    forbidden = ops.convert_to_tensor(np.array([[True, False, True], [True, True, True]]))
    kept = candidates([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], size=3).forbid(forbidden)
    inf = float("inf")
    assert lists(kept)[0] == [[-inf, 2.0, -inf], [4.0, 5.0, 6.0]]


def test_forbidden_before_counts_as_gone():
    inf = float("inf")
    kept = candidates([[-inf, 2.0]], size=2).forbid(ops.convert_to_tensor([[False, True]]))
    assert lists(kept)[0] == [[-inf, 2.0]]


def test_pick_and_spread_go_by_id():
    part = candidates([[1.0, 2.0], [3.0, 4.0]], [[4, 0], [1, 2]])
    table = ops.convert_to_tensor(np.arange(10, dtype="float32").reshape(2, 5))
    assert ops.convert_to_numpy(part.pick(table)).tolist() == [[4.0, 0.0], [6.0, 7.0]]
    spread = ops.convert_to_numpy(part.spread(part.logits))
    assert spread.tolist() == [[2.0, 0, 0, 0, 1.0], [0, 3.0, 4.0, 0, 0]]


def test_probabilities_are_a_softmax_that_takes_minus_infinity():
    found = candidates([[0.0, np.log(3.0), -np.inf], [1e30, -1e30, 1e30]], size=3).probabilities()
    expected = [[0.25, 0.75, 0.0], [0.5, 0.0, 0.5]]
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, rtol=1e-6)


def test_put_leaves_out_ids_equal_to_the_size():
    token_ids = ops.convert_to_tensor(np.array([[1, 1, 3], [3, 0, 2]], "int32"))
    marks = ops.convert_to_numpy(put(token_ids, ops.ones_like(token_ids, dtype="bool"), 3))
    assert marks.tolist() == [[False, True, False], [True, False, True]]
