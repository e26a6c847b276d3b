"""Ending a training politely when asked to."""

import contextlib
import signal
import threading

import keras


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


class SignalsAtBatchEnds(keras.callbacks.Callback):
    """Inside its `with` block SIGTERM and ctrl-C wait for the end of a batch.

    There the handler that was set before is called. An exception raised at any other moment of a
    training can fall into a destructor or a callback from C++, where it is dropped or aborts.
    """

    numbers = (signal.SIGTERM, signal.SIGINT)

    def __enter__(self):
        self.received = None
        self.handlers = {}
        # Only the main thread gets signals.
        if threading.current_thread() is threading.main_thread():
            self.handlers = {number: signal.getsignal(number) for number in self.numbers}
        for number, handler in self.handlers.items():
            if callable(handler):
                signal.signal(number, self.receive)
        return self

    def __exit__(self, *exception):
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def receive(self, number, frame):
        """Keeps a signal for later."""
        self.received = number

    def on_train_batch_end(self, batch, logs=None):
        if self.received is not None:
            number, self.received = self.received, None
            self.handlers[number](number, None)
