"""Special tokens: what has a role in a sequence instead of a spelling in the text."""

from __future__ import annotations

import types
from collections.abc import Mapping

# What a tokenizer for language models has when nothing else is asked: the end of a document.
END_OF_TEXT = types.MappingProxyType({"end": "<|endoftext|>"})


def check_text(text: str) -> str:
    """Returns the text.

    Raises:
        ValueError: If it holds half of a surrogate pair, which is no character.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"text must hold Unicode characters only; received {text[error.start]!r} "
            f"at position {error.start}."
        ) from error
    return text


def check_special_tokens(special_tokens: Mapping[str, str]) -> dict[str, str]:
    """Returns a copy of role to name.

    Raises:
        ValueError: If that is no mapping from names of roles to names of tokens.
    """
    if not isinstance(special_tokens, Mapping):
        raise ValueError(
            'special_tokens must map roles to names, as {"end": "</s>"}; '
            f"received special_tokens={special_tokens!r}."
        )
    for role, token in special_tokens.items():
        if not isinstance(role, str) or not isinstance(token, str) or not role or not token:
            raise ValueError(
                "special_tokens must map roles to names, both strings that are not empty; "
                f"received {role!r}: {token!r}."
            )
        check_text(token)
    return dict(special_tokens)


def distinct(special_tokens: Mapping[str, str]) -> list[str]:
    """Returns the names, each once: two roles may share a token."""
    return list(dict.fromkeys(special_tokens.values()))
