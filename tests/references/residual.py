"""Orders of residual, norm and sublayer; all arguments but x are functions."""


def pre(x, sublayer, norm):
    """GPT-2 (Radford et al. 2019, section 2.3)."""
    return x + sublayer(norm(x))


def post(x, sublayer, norm):
    """The first Transformer (Vaswani et al. 2017, section 3.1)."""
    return norm(x + sublayer(x))


def sandwich(x, sublayer, norm, output_norm):
    """CogView (Ding et al. 2021, section 2.4)."""
    return x + output_norm(sublayer(norm(x)))


def parallel(x, attention, feedforward, norm):
    """GPT-J and PaLM (Chowdhery et al. 2022, section 2): one norm, two sublayers, one sum."""
    return x + attention(norm(x)) + feedforward(norm(x))
