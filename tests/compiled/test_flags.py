"""Inner products of rows whose features mostly have one value are those of any rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from pistol import PistolClassifier
from pistol._compiled import flags
from pistol._compiled.flags import Flags

few = settings(max_examples=20, deadline=None)


def one_hot(seed, n=70, words=8, levels=9):
    """Centred columns of flags, one of which is constant, and a few other values."""
    rng = np.random.default_rng(seed)
    X = np.eye(levels)[rng.integers(0, levels - 1, (n, words))].reshape(n, -1)
    X[:, 0] += 0.5 * (rng.random(n) < 0.05)
    return X - X.mean(axis=0)


@few
@given(seed=st.integers(0, 10**6), dtype=st.sampled_from([np.float32, np.float64]))
def test_products_are_those_of_the_rows(seed, dtype):
    S, A = one_hot(seed).astype(dtype), np.random.default_rng(seed).normal(size=(33, 72))
    form, A = Flags.of(S), A.astype(dtype)
    assert form is not None
    out = np.full((50, 33), np.nan, dtype)
    form.products(slice(10, 60), form.columns(A), out)
    exact = S[10:60].astype(np.float64) @ A.astype(np.float64).T
    assert_allclose(out, exact, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-12)


def test_more_columns_than_are_multiplied_together():
    S = one_hot(0)
    form = Flags.of(S)
    A = np.random.default_rng(0).normal(size=(flags.COLUMNS + 5, S.shape[1]))
    out = np.empty((len(S), len(A)))
    assert_allclose(form.products(slice(0, len(S)), form.columns(A), out), S @ A.T, atol=1e-12)


def test_what_is_unusual_is_what_is_kept():
    S = one_hot(1)
    form = Flags.of(S)
    again = np.tile(form.usual, (len(S), 1))
    again[np.repeat(np.arange(len(S)), np.diff(form.starts)), form.features] += form.data
    assert_allclose(again, S, atol=1e-15)
    assert len(form.data) < 0.15 * S.size


def test_other_rows_are_left_to_blas():
    rng = np.random.default_rng(0)
    assert Flags.of(rng.normal(size=(50, 40))) is None
    assert Flags.of(one_hot(0)[:, : flags.NARROW]) is None
    assert Flags.of(one_hot(0)[:0]) is None
    late = one_hot(0, n=4000)
    late[np.arange(4000) % 15 != 0] = rng.normal(size=(3733, 72))
    assert Flags.of(late) is None, "although the rows that are looked at first are flags"


@pytest.mark.parametrize("outputs", [2, 6])
def test_predictions_are_the_same_with_and_without(outputs, monkeypatch):
    X, rng = one_hot(2, n=1500), np.random.default_rng(0)
    model = PistolClassifier(random_state=0).fit(X, rng.integers(0, outputs, 1500))
    used = []
    real = Flags.of
    monkeypatch.setattr(Flags, "of", lambda S: (used.append(real(S)), used[-1])[1])
    ours = model.decision_function(X)
    monkeypatch.setattr(Flags, "of", lambda S: None)
    assert_allclose(ours, model.decision_function(X), rtol=1e-4, atol=1e-4)
    assert any(one is not None for one in used)
