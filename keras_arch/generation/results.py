"""What was generated."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class Generation:
    """What was generated after each prompt; numpy arrays `[B, N]`.

    Attributes:
        token_ids: int32; a row ends with its stop id, if it found one, and zeros.
        valid: bool, True = generated token.
        log_probabilities: float32, of each token by the model, in nats; None if not asked for.
        texts: The decoded rows without their stop ids, if there was a tokenizer.
    """

    token_ids: Any
    valid: Any
    log_probabilities: Any
    texts: list | None
