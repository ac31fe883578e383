"""The data of Figure 3: where they are found, what stands in for them, and their shuffles."""

import bz2
import lzma
import os
import re
from hashlib import sha256
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sklearn.datasets import dump_svmlight_file

from pistol_lab import data, download
from pistol_lab.data import DataError, File
from pistol_lab.download import ChecksumError
from pistol_lab.reproduction.section7 import datasets, prepare
from pistol_lab.reproduction.section7.datasets import (
    gather,
    load,
    median_gamma,
    shuffled,
)

NAMES = ["a9a", "SensIT Vehicle", "news20.binary"]
PACK = {"": bytes, ".bz2": bz2.compress, ".xz": lzma.compress}
LABELS = {"a9a": (1, -1), "news20.binary": (1, -1), "combined": (1, 2, 3), "wisdm_fft": range(1, 7)}


class Place:
    """Small files under the names of the real ones, and the folders where they may be."""

    def __init__(self, folder, monkeypatch):
        self.data, self.cache, self.site = (folder / name for name in ("data", "cache", "site"))
        self.data.mkdir()
        self.patch = monkeypatch
        self.files = dict(data.FILES)
        for name, value in {"PISTOL_DATA": self.data, "PISTOL_CACHE": self.cache}.items():
            monkeypatch.setenv(name, str(value))
        monkeypatch.setattr(data, "FILES", self.files)
        monkeypatch.setattr(data, "SITE", self.site.as_uri())
        monkeypatch.setattr(download, "PAUSE", 0.0)

    def write(self, name, path, ending="", n=12):
        """Random rows, of which the table of files then knows; the text."""
        labels = LABELS[name.removesuffix(".t")]
        X = np.random.default_rng(len(name)).integers(1, 9, (n, 4)) / 8
        y = np.resize(labels, n)
        path.parent.mkdir(parents=True, exist_ok=True)
        dump_svmlight_file(X, y, str(path), zero_based=False)
        text = path.read_bytes()
        path.unlink()
        path.with_name(path.name + ending).write_bytes(PACK[ending](text))
        counts = {int(k): int(v) for k, v in zip(*np.unique(y, return_counts=True))}
        known = self.files[name]
        self.files[name] = known._replace(rows=n, features=4, labels=counts, sha256=None)
        return text

    def serve(self, name, **how):
        """Put a file where it would be on the LIBSVM site."""
        url = self.files[name].url
        ending = ".bz2" if url.endswith(".bz2") else ""
        return self.write(name, self.site / url.removesuffix(ending), ending, **how)

    def forget(self):
        """As another process would, which remembers nothing."""
        datasets._load.cache_clear()


@pytest.fixture
def place(tmp_path, monkeypatch):
    datasets._load.cache_clear()
    yield Place(tmp_path, monkeypatch)
    datasets._load.cache_clear()


def files(name):
    return datasets.PANELS[name].files


def same(ours, theirs):
    for a, b in [(ours.X, theirs.X), (ours.X_test, theirs.X_test)]:
        a, b = (rows.toarray() if sp.issparse(rows) else rows for rows in (a, b))
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(ours.y, theirs.y)
    np.testing.assert_array_equal(ours.y_test, theirs.y_test)


@pytest.mark.parametrize("name", NAMES)
def test_without_any_file_data_of_scikit_learn_stand_in_and_say_so(place, name):
    problem = load(name)
    assert problem.name == name
    assert problem.source.startswith("scikit-learn")
    assert problem.stand_in.startswith(f"{problem.source} stands in for {name}: ")
    assert (
        f"the file {files(name)[0]} is neither in PISTOL_DATA nor in the cache" in problem.stand_in
    )
    assert set(problem.y) == {-1.0, 1.0}
    assert len(problem.y_test) == problem.X_test.shape[0] == 0
    assert problem.held_out == len(problem.y) // 3
    if name == "news20.binary":
        assert problem.gamma is None
        np.testing.assert_allclose(problem.X.multiply(problem.X).sum(axis=1), 1.0)
    else:
        assert problem.gamma == median_gamma(problem.X)
        assert problem.gamma_rule == datasets.MEDIAN


def test_the_paper_fixes_the_protocol():
    grids = {name: [np.log2(C) for C in panel.C] for name, panel in datasets.PANELS.items()}
    assert grids == {
        "a9a": [-1, 0, 1, 2, 3],
        "SensIT Vehicle": [0, 1, 2, 3, 4, 5, 6],
        "news20.binary": [1, 2, 3, 4],
    }
    assert [panel.gamma for panel in datasets.PANELS.values()] == [0.04, 0.125, None]
    assert [panel.held_out for panel in datasets.PANELS.values()] == [0, 0, 10_000]
    assert [panel.most for panel in datasets.PANELS.values()] == [None, 58_000, None]


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("name", NAMES)
def test_files_are_found_packed_or_not(place, name, ending):
    for file in files(name):
        place.write(file, place.data / file, ending)
    problem, panel = load(name), datasets.PANELS[name]
    assert problem.source == panel.source
    assert problem.stand_in == ""
    assert (problem.gamma, problem.C) == (panel.gamma, panel.C)
    assert problem.X.shape == (12, 4)
    assert problem.X_test.shape == ((12, 4) if len(files(name)) == 2 else (0, 4))
    assert problem.y.dtype == problem.y_test.dtype == np.float64
    if sp.issparse(problem.X):
        assert problem.X.indices.dtype == problem.X.indptr.dtype == np.int32
    else:
        assert problem.X.dtype == np.float32
        assert problem.X.flags.c_contiguous


def test_the_third_vehicle_is_told_from_the_others(place):
    for file in files("SensIT Vehicle"):
        place.write(file, place.data / file)
    assert load("SensIT Vehicle").y.tolist() == [-1, -1, 1] * 4


def test_features_that_do_not_occur_in_the_test_file_are_zero(place):
    place.write("a9a", place.data / "a9a")
    (place.data / "a9a.t").write_text("1 1:1\n-1 2:1\n")
    place.files["a9a.t"] = File("", 2, 2, {1: 1, -1: 1})
    assert load("a9a").X_test.toarray().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]


def test_the_own_folder_comes_before_the_cache(place):
    for file in files("a9a"):
        place.write(file, place.cache / file, n=30)
        place.write(file, place.data / file, n=12)
    assert len(load("a9a").y) == 12


@pytest.mark.parametrize("name", NAMES)
def test_missing_files_are_downloaded_once(place, name):
    for file in files(name):
        place.serve(file)
    seen = []
    assert load(name).stand_in != ""
    gather(name, lambda done, total: seen.append((done, total)))
    problem = load(name)
    assert problem.stand_in == ""
    assert [done == total for done, total in seen] == [True] * len(files(name))
    place.patch.setattr(data, "SITE", "file:///nowhere")
    gather(name)
    place.forget()
    same(load(name), problem)


def test_only_what_is_missing_is_downloaded(place):
    place.write("a9a", place.data / "a9a", ".xz")
    place.serve("a9a.t")
    gather("a9a")
    assert load("a9a").stand_in == ""
    assert (place.cache / "a9a.t").exists()
    assert not (place.cache / "a9a").exists()


@pytest.mark.parametrize("name", NAMES)
def test_a_failed_download_says_why(place, name):
    url = f"{place.site.as_uri()}/{data.FILES[files(name)[0]].url}"
    with pytest.raises(OSError, match=re.escape(f"{url} could not be downloaded")):
        gather(name)
    place.patch.setenv("PISTOL_CACHE", str(place.data / "a file" / "cache"))
    (place.data / "a file").touch()
    with pytest.raises(OSError, match="a file"):  # nowhere to download to
        gather(name)


def test_before_a_long_run_what_can_be_downloaded_is_and_the_rest_is_said(place):
    for file in files("a9a"):
        place.serve(file)
    console = Console(record=True, width=300, quiet=False, file=StringIO())
    prepare(console)
    assert load("a9a").stand_in == ""
    said = console.export_text()
    assert "a9a:" not in said
    for name in ("SensIT Vehicle", "news20.binary"):
        assert f"{name}: " in said
        assert "could not be downloaded" in said


def test_a_download_with_a_wrong_sum_is_an_error(place):
    text = place.serve("a9a")
    place.files["a9a"] = place.files["a9a"]._replace(sha256="0" * 64)
    with pytest.raises(ChecksumError) as error:
        gather("a9a")
    for part in (place.files["a9a"].url, "0" * 64, sha256(text).hexdigest()):
        assert part in str(error.value)


@pytest.mark.parametrize("ending", PACK)
def test_a_found_file_with_a_wrong_sum_is_an_error(place, ending):
    for file in files("a9a"):
        text = place.write(file, place.data / file, ending)
    place.files["a9a.t"] = place.files["a9a.t"]._replace(sha256="0" * 64)
    with pytest.raises(ChecksumError) as error:
        load("a9a")
    for part in (str(place.data / f"a9a.t{ending}"), "0" * 64, sha256(text).hexdigest(), "Delete"):
        assert part in str(error.value)


def test_a_download_that_changed_later_is_an_error(place):
    place.serve("news20.binary")
    gather("news20.binary")
    assert load("news20.binary").stand_in == ""
    place.forget()
    path = place.cache / "news20.binary.bz2"
    path.write_bytes(bz2.compress(bz2.decompress(path.read_bytes()).replace(b"0.5", b"0.4")))
    with pytest.raises(ChecksumError, match=str(path)):
        load("news20.binary")


@pytest.mark.parametrize(
    "change",
    [{"rows": 11}, {"features": 5}, {"labels": {1: 5, -1: 7}}, {"labels": {1: 12}}],
    ids=lambda change: "".join(change),
)
def test_a_file_with_other_counts_than_published_is_an_error(place, change):
    place.write("news20.binary", place.data / "news20.binary")
    place.files["news20.binary"] = place.files["news20.binary"]._replace(**change)
    with pytest.raises(DataError, match=r"news20\.binary has 12 rows, 4 features"):
        load("news20.binary")


@pytest.mark.parametrize(
    ("labels", "right"), [((1, 2, 3), True), ((1, 2), False), (range(5), False)]
)
def test_labels_count_where_their_numbers_are_not_published(place, labels, right):
    for file in files("SensIT Vehicle"):
        place.write(file, place.data / file)
        place.files[file] = place.files[file]._replace(labels=dict.fromkeys(labels))
    if right:
        assert load("SensIT Vehicle").stand_in == ""
    else:
        with pytest.raises(DataError):
            load("SensIT Vehicle")


@pytest.mark.parametrize("ending", PACK)
def test_a_damaged_file_is_named(place, ending):
    path = place.data / f"news20.binary{ending}"
    place.write("news20.binary", place.data / "news20.binary", ending)
    path.write_bytes(b"<html>" if ending == "" else path.read_bytes()[:-9])
    with pytest.raises(DataError, match=str(path)):
        load("news20.binary")


def test_wisdm_stands_in_for_sensit_until_sensit_is_there(place):
    place.write("wisdm_fft", place.data / "wisdm_fft", ".xz")
    assert load("SensIT Vehicle").source.startswith("scikit-learn")  # no test file
    place.forget()
    place.write("wisdm_fft.t", place.data / "wisdm_fft.t", ".xz")
    problem = load("SensIT Vehicle")
    assert problem.source == "wisdm_fft"
    assert problem.stand_in.startswith("wisdm_fft")
    assert "stands in for SensIT Vehicle: the file combined is neither" in problem.stand_in
    assert problem.y.tolist() == problem.y_test.tolist() == [1, -1] * 6
    assert problem.gamma == median_gamma(problem.X)
    assert problem.gamma_rule == datasets.MEDIAN
    assert problem.most == 58_000
    place.forget()
    for file in files("SensIT Vehicle"):
        place.write(file, place.data / file, ".bz2")
    assert load("SensIT Vehicle").source == "SensIT Vehicle (combined)"


def test_the_fragment_of_sensit_is_no_stand_in(place):
    (place.data / "sensit_sample.xz").write_bytes(lzma.compress(b"1 1:1\n-1 2:1\n"))
    assert load("SensIT Vehicle").source.startswith("scikit-learn")


def test_a_rebuilt_news20_says_so(place):
    text = place.write("news20.binary", place.data / "news20.binary", ".xz")
    place.patch.setattr(datasets, "REBUILT", sha256(text).hexdigest())
    problem = load("news20.binary")
    assert problem.source == "news20.binary (rebuilt)"
    assert "rebuilt" in problem.stand_in


def test_what_was_parsed_is_not_parsed_again(place):
    for file in files("a9a"):
        place.write(file, place.data / file)
    problem = load("a9a")
    assert load("a9a") is problem
    place.forget()
    with place.patch.context() as patch:
        patch.delattr(data, "load_svmlight_file")
        same(load("a9a"), problem)
    place.forget()
    place.write("a9a", place.data / "a9a", n=14)
    assert len(load("a9a").y) == 14


def test_rows_are_read_where_nothing_can_be_kept(place):
    for file in files("a9a"):
        place.write(file, place.data / file)
    place.patch.setenv("PISTOL_CACHE", str(place.data / "a9a" / "cache"))
    assert load("a9a").stand_in == ""


def numbered(n, held_out, most, sparse):
    """A problem whose rows are known by their only number, with labels that follow from it."""
    X = np.arange(n, dtype=float)[:, None]
    y = np.where(X[:, 0] % 3 == 0, 1.0, -1.0)
    X = sp.csr_matrix(X) if sparse else X
    test = (X[:0], y[:0]) if held_out else (X[:2], y[:2])
    return datasets.Problem("a", "b", "", X, y, *test, 1.0, "", (1.0,), held_out, most)


def numbers(X):
    return (X.toarray() if sp.issparse(X) else X)[:, 0]


@given(
    st.integers(3, 60), st.integers(0, 2), st.integers(1, 60) | st.none(),
    st.integers(0, 9), st.booleans(),
)  # fmt: skip
def test_a_shuffle_keeps_rows_with_their_labels_and_apart_from_the_test(
    n, held_out, most, shuffle, sparse
):
    problem = numbered(n, held_out, most, sparse)
    found = shuffled(problem, shuffle)
    train, test = numbers(found.X), numbers(found.X_test)
    np.testing.assert_array_equal(found.y, np.where(train % 3 == 0, 1.0, -1.0))
    np.testing.assert_array_equal(found.y_test, np.where(test % 3 == 0, 1.0, -1.0))
    assert len(set(train)) == len(train) == min(n - held_out, most or n)
    if held_out:
        assert len(set(test)) == len(test) == held_out
        assert not set(train) & set(test)
    else:
        np.testing.assert_array_equal(test, [0, 1])
    same(shuffled(problem, shuffle), found)


def test_shuffles_differ():
    problem = numbered(60, 20, None, False)
    first, second = (shuffled(problem, k) for k in range(2))
    assert set(numbers(first.X_test)) != set(numbers(second.X_test))
    assert numbers(first.X).tolist() != numbers(second.X).tolist()


@given(st.integers(2, 40), st.sampled_from([0.25, 0.5, 1.0, 2.0, 8.0]), st.booleans())
def test_the_rule_for_gamma_inverts_the_squared_distance(n, size, sparse):
    X = size * np.eye(n)  # all rows are √2 · size apart
    assert median_gamma(sp.csr_matrix(X) if sparse else X) == float(f"{0.5 / size**2:.2g}")


@pytest.mark.parametrize("pairs", range(1, 10))
def test_no_row_is_paired_with_itself(monkeypatch, pairs):
    monkeypatch.setattr(datasets, "PAIRS", pairs)
    assert median_gamma(np.eye(2)) == 0.5


@pytest.mark.skipif(
    not Path(os.environ.get("PISTOL_DATA", ""), "a9a.xz").is_file(),
    reason="no data: set PISTOL_DATA to a directory with a9a.xz and a9a.t.xz",
)
def test_a9a_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("PISTOL_CACHE", str(tmp_path))
    problem = load("a9a")
    assert (problem.X.shape, problem.X_test.shape) == ((32561, 123), (16281, 123))
    assert problem.stand_in == ""
    assert f"{median_gamma(problem.X)}, where the paper has {problem.gamma}" in datasets.MEDIAN
