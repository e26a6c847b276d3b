"""Ending a training politely when asked to."""

import contextlib
import signal


class Interrupted(BaseException):
    """The process was asked to end; `code` is the exit status a shell expects."""

    def __init__(self, number):
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.code = 128 + number


@contextlib.contextmanager
def interruptible():
    """Inside, SIGTERM and ctrl-C raise Interrupted; the handlers before come back afterwards."""

    def interrupt(number, frame):
        raise Interrupted(number)

    before = {n: signal.signal(n, interrupt) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
