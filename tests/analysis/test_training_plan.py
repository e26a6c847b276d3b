import pytest

import keras_arch as ka

pytestmark = pytest.mark.once


def test_it_prints_a_table():
    plan = ka.analysis.plan(ka.models.SIZES["llama"]["7b"], 8, devices=8, memory=80e9)
    table = dict(line.split("  ", 1) for line in str(plan).splitlines())
    table = {name: text.strip() for name, text in table.items()}
    assert table["parameters"] == "6,738,415,616"
    assert table["devices"] == "8 by data"
    assert table["optimizer"] == "53.9 GB"
    assert table["step"] == "not known"
    assert table["fits"] == "no, of 80 GB"
    assert table["largest that fits"].startswith("width ")
