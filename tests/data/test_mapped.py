"""Rows that are made when asked for are the rows that would be made at once."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pistol._data import mapped
from pistol._data.mapped import Mapped, among


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_the_same_whether_they_are_made_at_once_or_not(dtype, monkeypatch):
    monkeypatch.setattr(mapped, "PART", 7)
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(dtype)
    ours = Mapped(X).then(np.exp).then(lambda Z: np.hstack([Z, -Z]).astype(np.float32))
    whole = np.hstack([np.exp(X), -np.exp(X)]).astype(np.float32)
    assert ours.shape == whole.shape
    assert ours.dtype == whole.dtype
    some = np.array([3, 3, 39, 0])
    assert_array_equal(ours[some], whole[some])
    assert_array_equal(ours.take(some), whole[some])
    assert_array_equal(ours[5:9], whole[5:9])
    assert_array_equal(ours.in_parts(), whole)
    monkeypatch.setattr(mapped, "PART", 40)
    assert_array_equal(ours.in_parts(), whole)


def test_without_steps_they_are_the_rows_themselves():
    X = np.arange(6.0).reshape(3, 2)
    assert np.shares_memory(Mapped(X)[:], X)
    assert not np.shares_memory(Mapped(X).in_parts(), X)  # which the user may change


def test_some_rows_are_still_made_when_they_are_asked_for():
    X = np.arange(12.0).reshape(4, 3)
    ours, rows = Mapped(X).then(np.sqrt), np.array([3, 0])
    some = among(ours, rows)
    assert isinstance(some, Mapped)
    assert_array_equal(some[:], ours[rows])
    assert_array_equal(among(X, rows), X[rows])


def test_without_columns_that_are_added_all_rows_are_in_memory():
    X = np.arange(12.0).reshape(4, 3)
    for ours in (Mapped(X), Mapped(X).then(np.sqrt)):
        found = ours.narrow()
        assert isinstance(found, np.ndarray)
        assert_array_equal(found, ours[:])
    assert_array_equal(Mapped(X).then(np.sqrt)[1:3, np.array([0, 2])], np.sqrt(X)[1:3][:, [0, 2]])
