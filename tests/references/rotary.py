"""Rotary positions by complex numbers, and the formulas that stretch them. Float64."""

import math

import numpy as np


def frequencies(head_width, base):
    """`base^(-2i/H)` for i = 0 .. H/2 - 1. Su et al. 2021, section 3.2.2."""
    return [base ** (-2 * i / head_width) for i in range(head_width // 2)]


def linear(head_width, base, factor):
    """Positions divided by `factor`, so frequencies too. Chen et al. 2023, section 2.3."""
    return [f / factor for f in frequencies(head_width, base)]


def dynamic_ntk(head_width, base, factor, context_length, length):
    """Another base for rows beyond the trained context.

    `base * (factor * L / context - (factor - 1))^(H / (H - 2))`: "NTK-aware" interpolation
    (bloc97 2023) with a scale that follows the length L read so far (emozilla 2023; both in Peng
    et al. 2023).
    """
    length = max(length, context_length)
    stretch = factor * length / context_length - (factor - 1)
    return frequencies(head_width, base * stretch ** (head_width / (head_width - 2)))


def yarn_columns(head_width, base, context_length, turns):
    """The (fractional) index of the frequency that turns `turns` times in the trained context.

    Solves `context * base^(-2i/H) / (2 pi) = turns` for i.
    """
    return head_width * math.log(context_length / (2 * math.pi * turns)) / (2 * math.log(base))


def yarn(head_width, base, factor, context_length, beta_fast=32, beta_slow=1):
    """Frequencies of YaRN: fast ones kept, slow ones divided by `factor`, a linear ramp between.

    Peng et al. 2023, section 3.2, with the ramp of the authors' code: linear in the index of the
    frequency, from the whole index below `beta_fast` turns to the whole index above `beta_slow`.
    """
    low = max(math.floor(yarn_columns(head_width, base, context_length, beta_fast)), 0)
    high = min(math.ceil(yarn_columns(head_width, base, context_length, beta_slow)), head_width - 1)
    result = []
    for i, frequency in enumerate(frequencies(head_width, base)):
        if i <= low:
            slow = 0.0
        elif i >= high:
            slow = 1.0
        else:
            slow = (i - low) / (high - low)
        result.append((1 - slow) * frequency + slow * frequency / factor)
    return result


def yarn_magnitude(factor):
    """`sqrt(1 / t) = 0.1 ln(s) + 1`, for queries and keys alike. Peng et al. 2023, section 3.3."""
    return 0.1 * math.log(factor) + 1


def llama3(head_width, base, factor, context_length, low_factor=1.0, high_factor=4.0):
    """Frequencies of LLaMA 3.1, by their wavelengths as in Meta's code, `apply_scaling`."""
    result = []
    for frequency in frequencies(head_width, base):
        wavelength = 2 * math.pi / frequency
        if wavelength < context_length / high_factor:
            result.append(frequency)
        elif wavelength > context_length / low_factor:
            result.append(frequency / factor)
        else:
            smooth = (context_length / wavelength - low_factor) / (high_factor - low_factor)
            result.append((1 - smooth) * frequency / factor + smooth * frequency)
    return result


def rotate(vector, position, frequencies, layout, magnitude=1.0):
    """Turns pair i of a vector [H], seen as a complex number, by `position * frequencies[i]`.

    Args:
        layout: "interleaved" pairs columns 2i and 2i + 1; "half_split" pairs i and i + H/2.
        magnitude: What the result is multiplied by.
    """
    half = len(vector) // 2
    turned = np.zeros(len(vector))
    for i in range(half):
        first, second = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + half)
        pair = complex(vector[first], vector[second])
        pair *= magnitude * complex(
            math.cos(position * frequencies[i]), math.sin(position * frequencies[i])
        )
        turned[first], turned[second] = pair.real, pair.imag
    return turned
