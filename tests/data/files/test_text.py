"""Text to rows: svmlight and Vowpal Wabbit's format."""

import bz2
import gzip
import io
import lzma
import os
import random

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.utils import murmurhash3_32

from pistol._data.files import basics, svmlight, vowpal
from pistol.files import DataFileError, chunks, read

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning"),  # numbers that wrap around
]

MUTATIONS = int(os.environ.get("PISTOL_MUTATIONS", "300"))

decimals = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    st.text("0123456789", min_size=1, max_size=25),
    st.sampled_from(["", ".", ".0", ".5", ".00000000000000000001", ".123456789012345678"]),
    st.sampled_from(["", "e0", "E5", "e-7", "e+22", "e-23", "e-330", "e290"]),
)


@given(st.floats(allow_nan=False, allow_infinity=False).map(repr) | decimals)
@example("9007199254740993")
@example("2.2250738585072011e-308")
@example("5e-324")
@example("2.4703282292062327208e-324")
@example("1.7976931348623157e308")
@example("0.000000000000000000000000000000000000000000000000000000000001")
@example("8.5e22")
@example("0.00012345678901234567")
@example("1e400")
@example("9007199254740992.99999999999999999999999")
@example("9007199254740993.00000000000000000000001")
@example("123456789012345678e-30")
def test_numbers_are_those_of_python(text):
    found = svmlight.parse(f"0 1:{text}\n".encode()).values
    assert found.tobytes() == np.array([float(text)]).tobytes()


@given(st.floats(allow_nan=False, allow_infinity=False).map(repr))
def test_targets_and_values_of_vowpal_text_are_numbers_too(text):
    assert svmlight.parse(f"{text}\n".encode()).y.tobytes() == np.array([float(text)]).tobytes()
    _, (X, y, _), _ = vowpal.parse(f"{text} |a b:{text}\n".encode())
    assert (y[0], X.sum()) == (float(text), float(text))


matrices = st.integers(0, 2**32 - 1).map(
    lambda seed: sp.random_array(
        (seed % 30 + 1, seed % 7 + 1), density=0.4, rng=np.random.default_rng(seed), format="csr"
    )
)


@given(matrices, st.booleans(), st.booleans(), st.sampled_from([7, 50, 2**22]))
def test_svmlight_is_read_as_scikit_learn_reads_it(X, zero_based, queries, piece):
    y, text = np.arange(X.shape[0]) - 2.5, io.BytesIO()
    ids = np.arange(X.shape[0]) if queries else None
    dump_svmlight_file(X, y, text, zero_based=zero_based, query_id=ids, comment="a: b")
    content = text.getvalue()
    theirs, targets = load_svmlight_file(
        io.BytesIO(content), n_features=X.shape[1], zero_based=zero_based
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(basics, "PIECE", piece)
        patch.setattr(basics, "open", lambda path, mode: io.BytesIO(content), raising=False)
        found = list(
            svmlight.read_svmlight("a.svm", basics.Trouble(), 1 - zero_based, X.shape[1], 1)
        )
    np.testing.assert_array_equal(sp.vstack([part.X for part in found]).toarray(), theirs.toarray())
    np.testing.assert_array_equal(np.concatenate([part.y for part in found]), targets)


LINES = b"1 1:0.5 3:2 # a word\n\n  -1 2:1e3\t4:-.5\r\n# only this\n0.5 qid:7\n2 4:1"
DENSE = [[0.5, 0, 2, 0], [0, 1000, 0, -0.5], [0, 0, 0, 0], [0, 0, 0, 1]]


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(LINES)
    return path


@pytest.mark.every_case_counts_lines
@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_packed_files_and_several_files(rows, suffix):
    def pack(content):
        if suffix == ".zst":
            return pytest.importorskip("zstandard").compress(content)
        tools = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
        return tools[suffix](content)

    for number in (1, 2):
        (rows.parent / f"part-{number}.svm{suffix}").write_bytes(pack(LINES))
    X, y, weight = read(rows.parent / "part-*.svm*")
    np.testing.assert_array_equal(X.toarray(), DENSE * 2)
    assert y.tolist() == [1, -1, 0.5, 2] * 2
    assert weight is None
    if suffix:
        damaged = rows.parent / f"bad.svm{suffix}"
        damaged.write_bytes(pack(LINES * 500)[:-12])
        with pytest.raises(DataFileError, match="damaged"):
            read(damaged)


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LINES)))
    np.testing.assert_array_equal(read("-").X.toarray(), DENSE)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("spam 1:1", "a target"), ("1 1:x", "no number"), ("1 1:", "no number"),
        ("1 1:1 1:2", "ascend"), ("1 2:1 1:2", "ascend"), ("1 0:1", "from 1 on"),
        ("1 1:1 word", "number:value"), ("1 1:1e", "no number"), ("1 99999999999:1", "above"),
        ("1 1:nan", "no number"), ("1 1:1:1", "no number"), ("1,2 1:1", "a target"),
    ],
)  # fmt: skip
def test_a_malformed_line_is_named_or_left_out(rows, line, problem):
    rows.write_bytes(LINES + b"\n" + line.encode() + b"\n3 1:1\n")
    with pytest.raises(DataFileError, match=rf"rows\.svm, line 7: .*{problem}.*{line[:9]}"):
        read(rows)
    parts = chunks(rows, on_error="skip")
    assert [y for _, targets, _ in parts for y in targets] == [1, -1, 0.5, 2, 3]
    assert parts.skipped == 1


def test_files_that_are_not_there(tmp_path):
    for path, problem in [("none.svm", "not exist"), ("*.svm", "no file"), ("a.doc", "the format")]:
        (tmp_path / "a.doc").touch()
        with pytest.raises(DataFileError, match=problem):
            list(chunks(tmp_path / path))
    with pytest.raises(DataFileError, match="is a folder"):
        list(chunks(tmp_path, format="svmlight"))
    with pytest.raises(ValueError, match="on_error"):
        chunks(tmp_path / "a.svm", on_error="ignore")


def test_a_feature_beyond_those_expected_is_named(rows):
    with pytest.raises(DataFileError, match="feature 3, but 2 features"):
        list(chunks(rows, n_features=2))


# Vowpal Wabbit


words = st.text("abcx019_é", min_size=1, max_size=9)
values = st.none() | st.integers(-9, 9)
spaces = st.lists(
    st.tuples(words, st.sampled_from([None, 0.5, 2.0]), st.lists(st.tuples(words, values))),
    min_size=1, max_size=3,
)  # fmt: skip
events = st.tuples(st.sampled_from([None, 1, -1]), st.sampled_from([None, 2.5]), words, spaces)


def vw_line(label, weight, tag, spaces):
    front = "" if label is None else f"{label} " if weight is None else f"{label} {weight} "
    parts = (
        f"|{name}" + ("" if scale is None else f":{scale}")
        + "".join(f" {f}" + ("" if v is None else f":{v}") for f, v in features)
        for name, scale, features in spaces
    )  # fmt: skip
    return f"{front}'{tag}{' '.join(parts)}\n"


def vw_row(spaces):
    row = np.zeros(2**10)
    for name, scale, features in spaces:
        seed = murmurhash3_32(name.encode(), positive=True)
        for f, v in features:
            whole = f.isascii() and f.isdigit()
            key = int(f) + seed if whole else murmurhash3_32(f.encode(), seed=seed, positive=True)
            row[key % 2**10] += (1 if v is None else v) * (1.0 if scale is None else scale)
    return row


@given(st.lists(events, min_size=1, max_size=5))
def test_vowpal_text_is_hashed_as_vowpal_does_it(lines):
    text = "".join(vw_line(*line) for line in lines).encode()
    _, (X, y, weight), counts = vowpal.parse(text, bits=10)
    assert counts[svmlight._text.BAD] == 0
    np.testing.assert_allclose(X.toarray(), [vw_row(spaces) for *_, spaces in lines])
    np.testing.assert_array_equal(y, [np.nan if label is None else label for label, *_ in lines])
    expected = [w if w is not None and label is not None else 1 for label, w, *_ in lines]
    np.testing.assert_array_equal(weight, expected)


@pytest.mark.parametrize(
    "line", ["no bar", "spam |a b", "1 -2 |a b", "1 |a b:c", "1 |a:x b", "1 |a:1e999 b:0"]
)
def test_a_malformed_line_of_vowpal_text(tmp_path, line):
    path = tmp_path / "rows.vw"
    path.write_text(f"1 |a b\n\n{line}\n-1 |a c\n")
    with pytest.raises(DataFileError, match=r"rows\.vw, line 3: "):
        read(path)
    parts = chunks(path, on_error="skip")
    assert sum(len(y) for _, y, _ in parts) == 2
    assert parts.skipped == 1


# Lines that are nonsense


@pytest.mark.parametrize("parse", [svmlight.parse, vowpal.parse])
def test_mutated_lines_do_no_harm(parse):
    """Whatever the bytes, every line is a row, a blank one or a wrong one."""
    for seed in range(MUTATIONS):
        rng = random.Random(seed)
        text = bytearray(LINES + b"\n1 2.0 tag|user:0.5 age:3 bob |item x y:2 77\n")
        for _ in range(rng.randrange(1, 9)):
            at = rng.randrange(len(text))
            text[at : at + rng.randrange(3)] = rng.choice(
                [b"", b":", b"|", b"\n", b"e", b"-", b"9" * 40, b"\0", b"\xff", b" ", b"#"]
            )
        parsed = parse(bytes(text) or b"\n")
        counts = parsed.counts if parse is svmlight.parse else parsed[2]
        lines = bytes(text).count(b"\n") + (not text.endswith(b"\n"))
        assert counts[svmlight._text.LINES] == lines, seed
        assert counts[svmlight._text.ROWS] + counts[svmlight._text.BAD] <= lines, seed
        numbers = parsed.values if parse is svmlight.parse else parsed[1].X.data
        assert not np.isnan(numbers).any(), seed
