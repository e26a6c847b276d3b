import numpy as np
import pytest

import keras_arch as ka

pytestmark = pytest.mark.once

IDS = np.arange(100, 123)


def batches(**options):
    data = ka.text.contiguous_rows(IDS, **{"context": 3, "batch_size": 2, **options})
    return list(data.as_numpy_iterator())


def test_each_token_but_the_first_is_a_target_once():
    targets = [targets[weights] for _, targets, weights in batches(epochs=1)]
    assert sorted(np.concatenate(targets)) == IDS[1:].tolist()


def test_rows_go_on_where_they_ended():
    """22 targets make two streams of 11, each four rows of 3 the last of which has a pad."""
    rows = batches(epochs=1)
    assert len(rows) == len(ka.text.contiguous_rows(IDS, 3, 2, epochs=1)) == 4
    for b, begin in enumerate((100, 111)):
        inputs = [inputs["token_ids"][b][weights[b]] for inputs, _, weights in rows]
        assert np.concatenate(inputs).tolist() == list(range(begin, begin + 11))
    assert [inputs["fresh"].tolist() for inputs, _, _ in rows] == [[True] * 2] + [[False] * 2] * 3


def test_a_text_that_does_not_divide():
    """22 targets in streams of 8, 8 and 6: the last one's last row is all pads."""
    rows = batches(epochs=1, batch_size=3, context=2)
    assert len(rows) == 4
    inputs, targets, weights = rows[-1]
    assert not weights[2].any()
    assert not inputs["valid"][2].any()
    assert targets.max() < IDS[-1]


def test_epochs_and_start_steps():
    thrice = batches(epochs=3)
    assert len(thrice) == 12
    for got, expected in zip(batches(epochs=3, start_step=5), thrice[5:], strict=True):
        np.testing.assert_equal(got, expected)
    np.testing.assert_equal(thrice[4], thrice[0])
    endless = ka.text.contiguous_rows(IDS, 3, 2, start_step=6).take(3)
    for got, expected in zip(endless.as_numpy_iterator(), thrice[6:9], strict=True):
        np.testing.assert_equal(got, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": 0}, "context must be a positive integer; received context=0"),
        ({"batch_size": 23}, "batch_size must be below the number of ids, 23; .*batch_size=23"),
        ({"start_step": -1}, "start_step must be an integer, 0 or more; received start_step=-1"),
        ({"vocabulary_size": 122}, "below vocabulary_size=122; received 122"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        batches(**options)
