import pytest

from keras_arch.text.special_tokens import check_special_tokens, check_text, distinct

pytestmark = pytest.mark.once


def test_roles_may_share_a_name():
    special = check_special_tokens({"end": "</s>", "begin": "<s>", "separator": "</s>"})
    assert distinct(special) == ["</s>", "<s>"]


@pytest.mark.parametrize("wrong", [None, "end", ["</s>"], {"end": None}, {"": "x"}, {1: "x"}])
def test_what_is_no_mapping_of_names_is_refused(wrong):
    with pytest.raises(ValueError, match="special_tokens must map roles to names"):
        check_special_tokens(wrong)


def test_half_a_surrogate_pair_is_no_text():
    assert check_text("\u4e2d\U0001f468") == "\u4e2d\U0001f468"
    with pytest.raises(ValueError, match=r"received '\\udfff' at position 2"):
        check_text("ab\udfff")
    with pytest.raises(ValueError, match=r"received '\\ud800' at position 0"):
        check_special_tokens({"end": "\ud800"})
