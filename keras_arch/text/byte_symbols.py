"""The printable characters that stand for bytes in byte-level vocabularies."""

from __future__ import annotations

import itertools


def _byte_symbols() -> list[str]:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = itertools.count(256)
    return [chr(byte if byte in printable else next(spare)) for byte in range(256)]


# SYMBOLS[byte]: printable Latin-1 characters stand for themselves, the other 68 bytes get the
# code points from 256 on, in order. Source: GPT-2's published vocabulary (Radford et al. 2019).
SYMBOLS = _byte_symbols()
BYTE_OF_SYMBOL = {symbol: byte for byte, symbol in enumerate(SYMBOLS)}


def token_bytes(token: str) -> bytes:
    """Returns the bytes that a token spelt in byte symbols stands for."""
    return bytes(BYTE_OF_SYMBOL[symbol] for symbol in token)
