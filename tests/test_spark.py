"""The recipe for Spark, on a session of two local threads."""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pistol

pytest.importorskip("pyspark", reason="the recipe for Spark is tested where pyspark is installed")
from pyspark.sql import SparkSession

RECIPE = Path(__file__).parents[1] / "docs" / "spark.py"


@pytest.fixture(scope="module")
def session():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.addPyFile(str(RECIPE))
    yield session
    session.stop()


@pytest.fixture
def recipe(monkeypatch):
    monkeypatch.syspath_prepend(str(RECIPE.parent))
    import spark

    return spark


def test_the_mean_of_the_models_of_all_partitions(recipe, session):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(900, 3)), columns=list("abc"))
    table["town"] = rng.choice(["Bern", "Rome"], 900)
    table["y"] = table["a"] - 2 * table["b"] + 3.0 * (table["town"] == "Rome")
    frame = session.createDataFrame(table[:600]).repartition(3)
    models = recipe.fit(frame)
    assert len(models) == 3
    assert sum(rows for _, rows in models) == 600
    found = recipe.predict(session.createDataFrame(table[600:]).coalesce(1), models).toPandas()
    assert list(found["y"]) == list(table["y"][600:])
    assert np.abs(found["prediction"] - found["y"]).mean() < 0.2 * np.abs(found["y"]).mean()
    X, y = table.drop(columns="y"), table["y"]
    one = pistol.LinearPistolRegressor(random_state=0).fit(X[:600], y[:600])
    alone = np.abs(one.predict(X[600:]) - y[600:]).mean()
    assert np.abs(found["prediction"] - found["y"]).mean() < alone + 0.1
