"""A Spark data frame: one model per partition, and the mean of what they predict.

Losses are convex, so the mean is at least as good as the models are on average (Jensen's inequality).
For classes, take the mean of `predict_proba` instead of `predict`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DoubleType, StructField, StructType

import pistol

TARGET, PREDICTION = "y", StructField("prediction", DoubleType())


def learn(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a partition in, a model file out."""
    rows = [batch for batch in batches if batch.num_rows]
    if not rows:
        return
    table = pa.Table.from_batches(rows)
    model = pistol.LinearPistolRegressor(random_state=0)
    model.fit(table.drop_columns([TARGET]), table[TARGET].to_numpy())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pistol")
        model.save(path, predict_only=True)
        content = {"model": [path.read_bytes()], "rows": [table.num_rows]}
    yield pa.RecordBatch.from_pydict(content)


def fit(frame: Any) -> list[tuple[bytes, int]]:
    """Model files of all partitions, each with the number of its rows."""
    found = frame.mapInArrow(learn, "model binary, rows long").collect()
    return [(bytes(row["model"]), row["rows"]) for row in found]


def predict(frame: Any, models: list[tuple[bytes, int]]) -> Any:
    """The frame with one more column, the mean prediction of all models."""

    def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with tempfile.TemporaryDirectory() as folder:
            path, loaded = Path(folder, "model.pistol"), []
            for content, rows in models:
                path.write_bytes(content)
                loaded.append((pistol.load(path), rows))
        total = sum(rows for _, rows in loaded)
        for batch in batches:
            if batch.num_rows:
                X = pa.Table.from_batches([batch])
                X = X.select([name for name in X.column_names if name != TARGET])
                mean = sum(rows / total * model.predict(X) for model, rows in loaded)
                yield batch.append_column("prediction", pa.array(np.asarray(mean, float)))

    return frame.mapInArrow(answer, StructType([*frame.schema, PREDICTION]))
