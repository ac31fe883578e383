"""Vowpal Wabbit behind scikit-learn's names."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from ...protocol import Array, peer
from ..vowpal import write


class VowpalWabbit:
    """One pass of Vowpal Wabbit with the logistic loss and nothing else set.

    It keeps the seconds of its own work, from and to its files; writing these is not counted.
    """

    def __init__(self) -> None:
        self.workspace = peer("vowpalwabbit").Workspace

    def fit(self, X: Any, y: Array) -> VowpalWabbit:
        """Learn the rows as they come."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        k, bits = len(self.classes_), max(18, int(np.ceil(np.log2(X.shape[1]))) + 1)
        many = ["--oaa", str(k), "--probabilities"] if k > 2 else []
        labels = codes + 1 if k > 2 else 2 * codes - 1
        with TemporaryDirectory() as folder:
            train, model = Path(folder, "train"), Path(folder, "model")
            write(train, sp.csr_array(X), labels)
            flags = ["--loss_function", "logistic", "-b", str(bits), *many]
            self.fit_seconds_ = self._run("-d", str(train), "-f", str(model), *flags)
            self.model_ = model.read_bytes()
        return self

    def predict(self, X: Any) -> Array:
        """The most likely label of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes."""
        with TemporaryDirectory() as folder:
            test, model, found = (Path(folder, name) for name in ("test", "model", "found"))
            model.write_bytes(self.model_)
            write(test, sp.csr_array(X), np.ones(X.shape[0]))
            files = ["-d", str(test), "-i", str(model), "-p", str(found)]
            many = ["--probabilities"] if len(self.classes_) > 2 else []
            self.predict_seconds_ = self._run("-t", *files, *many)
            lines = found.read_text(encoding="utf-8").split("\n")[: X.shape[0]]
        if len(self.classes_) == 2:
            p = expit(np.array(lines, float))
            return np.column_stack([1.0 - p, p])
        P = np.array([[pair.partition(":")[2] for pair in line.split()] for line in lines], float)
        return P / P.sum(axis=1, keepdims=True)

    def _run(self, *flags: str) -> float:
        start = perf_counter()
        self.workspace(arg_list=[*flags, "--quiet"]).finish()
        return perf_counter() - start
