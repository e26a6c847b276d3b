import os
import signal

import pytest

from keras_arch.training import Interrupted, interruptible


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
