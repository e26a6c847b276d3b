import gzip

import pytest

from keras_arch.text import Pairs, find_tabbed_pairs

pytestmark = pytest.mark.once


def write(path, count, first=0):
    lines = [f"source {i}\ttarget {i}" for i in range(first, first + count)]
    path.write_text("\n".join(lines) + "\n")
    return path


def pairs(numbers):
    return Pairs([f"source {i}" for i in numbers], [f"target {i}" for i in numbers])


@pytest.mark.parametrize(("count", "part"), [(40, 4), (25, 2), (3, 1)])
def test_a_file_is_split_in_its_order(tmp_path, count, part):
    found = find_tabbed_pairs(write(tmp_path / "pairs.tsv", count))
    cuts = [(0, count - 2 * part), (count - 2 * part, count - part), (count - part, count)]
    assert found == tuple(pairs(range(*cut)) for cut in cuts)


def test_a_folder_has_three_files(tmp_path):
    write(tmp_path / "train.tsv", 5)
    write(tmp_path / "val.tsv", 2, first=5)
    test = write(tmp_path / "test.tsv", 1, first=7)
    (tmp_path / "test.tsv.gz").write_bytes(gzip.compress(test.read_bytes()))
    test.unlink()
    assert find_tabbed_pairs(tmp_path) == (pairs(range(5)), pairs((5, 6)), pairs([7]))
    (tmp_path / "val.tsv").unlink()
    with pytest.raises(ValueError, match=r"must hold one of \['val.tsv', 'val.tsv.gz'\]"):
        find_tabbed_pairs(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no tab", "received 1 columns on line 2: .'no tab'"),
        ("no target\t", "received 1 columns on line 2: .'no target'"),
        ("\tno source", "received 1 columns on line 2: .'no source'"),
        ("a\tb\tc", "received 3 columns on line 2"),
        ("a\t\tc", "received 3 columns on line 2"),
        ("", "the first empty one is 2"),
    ],
)
def test_a_line_that_is_no_pair_is_named(tmp_path, line, message):
    path = tmp_path / "pairs.tsv"
    path.write_text(f"a\tb\n{line}\na\tb\n")
    with pytest.raises(ValueError, match=f"{path}.*{message}"):
        find_tabbed_pairs(path)


def test_too_few_to_split_and_none_at_all(tmp_path):
    with pytest.raises(ValueError, match="at least 3 pairs, to be split; received 2"):
        find_tabbed_pairs(write(tmp_path / "pairs.tsv", 2))
    with pytest.raises(ValueError, match="received 'nothing', which is not"):
        find_tabbed_pairs("nothing")
