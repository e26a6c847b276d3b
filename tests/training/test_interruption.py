import os
import signal

import pytest

from keras_arch.training import Interrupted, interruptible
from keras_arch.training.interruption import SignalsAtBatchEnds


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_become_an_exception_with_the_shells_code(number, code):
    def interrupt():
        with interruptible():
            os.kill(os.getpid(), number)
            signal.pause()

    before = signal.getsignal(number)
    with pytest.raises(Interrupted, match=number.name) as caught:
        interrupt()
    assert caught.value.code == code
    assert signal.getsignal(number) is before


def test_in_a_training_signals_wait_for_the_end_of_a_batch():
    def train():
        with interruptible(), SignalsAtBatchEnds() as callback:
            os.kill(os.getpid(), signal.SIGTERM)
            reached.append("inside the batch")
            callback.on_train_batch_end(0)
            reached.append("after the batch")

    reached, before = [], signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="SIGTERM"):
        train()
    assert reached == ["inside the batch"]
    assert signal.getsignal(signal.SIGTERM) is before
