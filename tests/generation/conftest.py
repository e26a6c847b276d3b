"""What the tests of generation share."""

import pytest

from keras_arch.generation.decode import Decode


@pytest.fixture
def traces(monkeypatch):
    """A list with an entry for each time that a decode loop was traced."""
    calls = []
    begin = Decode.begin

    def counting(*arguments):
        calls.append(1)
        return begin(*arguments)

    monkeypatch.setattr(Decode, "begin", counting)
    return calls
