"""A forest beside the base: where it helps, and that no tree scores rows that it has seen."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import pistol
from pistol import PistolClassifier, PistolRegressor
from pistol._compiled.threads import workers
from pistol._estimators import base
from pistol._training import cells as _cells
from pistol._training import forest, spread_cells, spread_choice
from pistol._training.families import Data
from pistol._training.fitted import Counts
from pistol._training.forms import FormError, Source, Written
from pistol._training.kernel_family import KernelFamily
from pistol._training.plan import Limits, make_plan
from pistol._training.saved_cells import FOREST
from pistol._training.spread_choice import begin_choice, settled

base_train = base.train

SMALL = Limits(few=300, sample=150, cell=200, base=200)
N = 1500
MAKERS = {
    "classes": PistolClassifier(random_state=0, metric=False),
    "three": PistolClassifier(random_state=0, metric=False),
    "targets": PistolRegressor(random_state=0, metric=False),
}
every = pytest.mark.parametrize("name", MAKERS)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(KernelFamily, "limits", SMALL)
    monkeypatch.setattr(forest, "ENOUGH", 300)


def table(name, n=N, seed=0):
    """A target that jumps where two of five features are large, and much noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 5))
    y = np.where((X[:, 0] > 0.1) & (X[:, 3] > -0.4), 2.0, -1.0) + rng.normal(size=n)
    if name == "targets":
        return X, y
    return X, np.digitize(y, [0.0] if name == "classes" else [-0.7, 0.7])


@pytest.fixture(scope="module")
def fitted():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KernelFamily, "limits", SMALL)
        patch.setattr(forest, "ENOUGH", 300)
        return {name: clone(each).fit(*table(name)) for name, each in MAKERS.items()}


def forest_of(model):
    return model.fitted_.learners[0].forest


def score_of(model, X):
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


@every
def test_a_forest_lowers_the_error(name, fitted, monkeypatch):
    model = fitted[name]
    assert all(learner.forest is forest_of(model) for learner in model.fitted_.learners)
    X, y = table(name, 4000, seed=1)
    with_trees = model.score(X, y)
    monkeypatch.setattr(forest, "ENOUGH", 10 * N)
    without = clone(model).fit(*table(name))
    assert forest_of(without) is None
    assert with_trees > without.score(X, y) + 0.005


@every
def test_there_is_none_where_it_does_not_lower_the_loss(name, monkeypatch):
    monkeypatch.setattr(forest, "GAIN", 1.0)
    assert forest_of(clone(MAKERS[name]).fit(*table(name))) is None


def test_there_is_none_for_few_rows_many_features_and_rows_in_one_pass(monkeypatch):
    X, y = table("targets")
    few = PistolRegressor(random_state=0, metric=False).fit(X[:450], y[:450])
    assert forest_of(few) is None
    stream = PistolRegressor(random_state=0, orders=None).fit(X, y)
    assert not hasattr(stream.fitted_.learners[0], "forest")
    monkeypatch.setattr(forest, "WIDEST", 4)
    assert forest_of(clone(MAKERS["targets"]).fit(X, y)) is None


@every
def test_rows_that_stay_sparse_have_a_forest_too(name, monkeypatch):
    monkeypatch.setattr("pistol._data.scaling.DENSE", 0)
    X, y = table(name)
    X = np.where(np.abs(X) < 0.2, 0.0, X)
    model = clone(MAKERS[name]).fit(sp.csr_array(X), y)
    assert sp.issparse(model.fitted_.learners[0].base.rows)
    assert forest_of(model) is not None
    assert_allclose(score_of(model, sp.csr_array(X)), score_of(model, X), rtol=1e-5, atol=1e-5)
    found = model.explain(X[:5])
    total = found.contributions.sum(axis=-1) + found.baseline
    assert_allclose(total, score_of(model, X[:5]), rtol=1e-5, atol=1e-5)


@pytest.fixture
def seen(monkeypatch):
    """What `beside_base` was given, and what it said."""
    found = []

    def watched(*args):
        found.append((args, forest.beside_base(*args)))
        return found[-1][1]

    monkeypatch.setattr(_cells, "beside_base", watched)
    return found


@every
def test_a_row_has_scores_of_trees_that_have_not_seen_it(name, seen, monkeypatch):
    """With other targets of one fold, the scores of its own rows do not change."""
    monkeypatch.setattr(forest, "_share", lambda *_: 1.0)
    folds, folds_of = [], forest.folds_of
    monkeypatch.setattr(
        forest, "folds_of", lambda codes: folds.append(folds_of(codes)) or folds[-1]
    )
    clone(MAKERS[name]).fit(*table(name))
    (work, start, known, order, seed, _), told = seen[0]
    Y = work.data.Y.copy()
    Y[folds[0] == 1] *= -1.0
    other = work._replace(data=work.data._replace(Y=Y))
    with workers(1) as threads:
        again = forest.beside_base(other, start, known, order, seed, threads)
    fold, same = folds
    assert_array_equal(same, fold, "which does not depend on targets")
    assert_array_equal(again.start[fold == 1], told.start[fold == 1])
    assert not np.allclose(again.start[fold != 1], told.start[fold != 1], rtol=0.1)


@every
def test_the_forest_of_all_folds_is_near_the_scores_that_cells_go_on_from(name, seen):
    """The same function of scaled rows, but for the trees that have seen a row."""
    clone(MAKERS[name]).fit(*table(name))
    (work, start, *_), told = seen[0]
    ours = told.forest.decide(work.data.X[:])
    theirs = told.start - start
    assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.8


@every
def test_threads_and_the_order_of_rows_do_not_matter(name, fitted):
    X, y = table(name)
    ours = fitted[name]
    alone = clone(MAKERS[name]).set_params(n_jobs=1).fit(X, y)
    assert_array_equal(score_of(alone, X), score_of(ours, X))
    order = np.random.default_rng(0).permutation(N)
    mixed = clone(MAKERS[name]).fit(X[order], y[order])
    for part, other in zip(forest_of(mixed).trees, forest_of(ours).trees, strict=True):
        assert_array_equal(part, other)
    assert_allclose(forest_of(mixed).value, forest_of(ours).value, rtol=1e-5, atol=1e-7)


@every
def test_copies_of_rows_are_as_good_as_weights(name, seen):
    X, y = table(name, 900)
    weight = 1.0 + np.arange(900) % 3
    at = np.repeat(np.arange(900), weight.astype(int))
    clone(MAKERS[name]).fit(X, y, sample_weight=weight)
    clone(MAKERS[name]).fit(X[at], y[at])
    (_, heavy), (_, copied) = seen
    for part, other in zip(heavy.forest.trees, copied.forest.trees, strict=True):
        assert_array_equal(part, other)
    assert_allclose(heavy.start[at], copied.start, rtol=1e-4, atol=1e-4)


@every
def test_files_pickles_and_further_rows(name, fitted, tmp_path):
    X, y = table(name)
    model, path = pickle.loads(pickle.dumps(fitted[name])), tmp_path / "model"
    model.save(path)
    loaded = pistol.load(path)
    assert_array_equal(score_of(loaded, X), score_of(model, X))
    for each in (model, loaded):
        each.partial_fit(X[:50], y[:50])
    assert_array_equal(score_of(loaded, X), score_of(model, X))
    model.save(path, predict_only=True)
    assert_allclose(score_of(pistol.load(path), X), score_of(model, X), rtol=1e-4, atol=1e-4)


def test_a_forged_forest_is_refused(fitted):
    found = fitted["targets"]
    own, sizes = forest_of(found), {"d": found.fitted_.scaler.features, "K": 1}
    trees = own.trees
    inner = trees.feature >= 0
    forged = [
        trees._replace(child=np.where(inner, 0, trees.child).astype(np.int32)),
        trees._replace(child=np.where(inner, len(inner) - 1, trees.child).astype(np.int32)),
        trees._replace(feature=np.full_like(trees.feature, sizes["d"])),
        trees._replace(roots=trees.roots + np.int32(len(inner))),
        trees._replace(roots=np.zeros_like(trees.roots)),
        trees._replace(threshold=np.full_like(trees.threshold, np.nan)),
    ]
    for each in forged:
        written = Written()
        parts = FOREST.write(own.__class__(each, own.value), written)
        with pytest.raises(FormError):
            FOREST.read(parts, Source(written.arrays, dict(sizes)))
    written = Written()
    again = FOREST.read(FOREST.write(own, written), Source(written.arrays, dict(sizes)))
    assert_array_equal(again.value, own.value)


@every
def test_features_that_trees_look_at_are_important(name, fitted):
    model = fitted[name]
    assert set(np.argsort(model.feature_importances_)[-2:]) == {0, 3}
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.kernel_weights_["trees"] > 0.05
    assert sum(model.kernel_weights_.values()) == pytest.approx(1.0)


@every
def test_explanations_add_up(name, fitted):
    model, (X, _) = fitted[name], table(name, 10, seed=2)
    found = model.explain(X)
    total = found.contributions.sum(axis=-1) + found.baseline
    assert_allclose(total, score_of(model, X), rtol=1e-5, atol=1e-5)


def test_what_is_interrupted_leaves_the_model_as_it_was(fitted, monkeypatch):
    model = pickle.loads(pickle.dumps(fitted["targets"]))
    X, y = table("targets")
    before = model.predict(X)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(forest, "learned_forest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert_array_equal(model.predict(X), before)


@every
def test_a_sample_chooses_a_forest_for_several_machines(name, monkeypatch):
    """Rows of the sample have the scores of trees that have not seen them; others those of all."""
    given = []
    monkeypatch.setattr(base, "train", lambda *args: given.append(args) or base_train(*args))
    clone(MAKERS[name]).fit(*table(name))
    block, problem, setup, _ = given[0]
    plan = make_plan(N, "auto", "auto", SMALL, block.X.shape[1], block.Y.shape[1])
    some = Data(block.X[:1000], block.Y[:1000], block.weight[:1000], block.ids[:1000])
    told = []
    monkeypatch.setattr(
        spread_choice,
        "beside_base",
        lambda *args: told.append(forest.beside_base(*args)) or told[-1],
    )
    start = begin_choice(some, problem, setup, plan, Counts(N, N, 1.0), float(N), None)
    shared = settled(start)
    groups = spread_cells.split(shared, block)[0]
    ids = np.concatenate([rows.data.ids for rows in groups.values()])
    found = np.concatenate([rows.start for rows in groups.values()])[np.argsort(ids)]
    assert shared.forest is told[0].forest is not None
    assert_allclose(found[:1000], told[0].start, rtol=1e-6, atol=1e-6)
    Z = spread_choice.compact(shared.blank, block.X[1000:])
    expected = shared.base.decide(Z) + shared.forest.decide(Z)
    assert_allclose(found[1000:], expected, rtol=1e-6, atol=1e-6)


@every
@pytest.mark.parametrize("kind", ["outlier", "tails", "categories"])
def test_folds_are_even_and_know_nothing_of_targets(name, kind, seen):
    """Whatever the features are like; with targets in the hash, folds would differ by class."""
    X, y = table(name)
    if kind == "categories":
        X = np.floor(3 * X)
    X = np.sign(X) * np.exp(9 * np.abs(X)) if kind == "tails" else X
    X[0] = 1e6 if kind == "outlier" else X[0]
    folds, folds_of = [], forest.folds_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "folds_of", lambda codes: folds.append(folds_of(codes)) or folds[-1])
        clone(MAKERS[name]).fit(X, y)
    share = np.bincount(folds[0], minlength=forest.FOLDS) / N
    assert_allclose(share, 1 / forest.FOLDS, atol=0.1)
    values = [y[folds[0] == k].mean() for k in range(forest.FOLDS)]
    assert_allclose(values, y.mean(), atol=5 * y.std() / np.sqrt(N / forest.FOLDS))


def test_rows_that_are_all_alike_have_no_forest():
    X, y = np.zeros((N, 2)), table("targets")[1]
    X[:3] = 1.0
    assert forest_of(clone(MAKERS["targets"]).fit(X, y)) is None


def test_trees_have_to_help_by_more_than_a_standard_error(monkeypatch):
    given = np.array([[1.0, 0.5, 9, 9, 9], [1.0, 1.4, 9, 9, 9]])
    rows = [np.zeros(1, np.int64)] * 2
    for shift, share in ((0.0, 0.0), (-0.5, 0.25)):
        found = iter(given + np.array([0, shift, 0, 0, 0]))
        monkeypatch.setattr(forest, "_losses", lambda *_, found=found: next(found))
        assert forest._share(None, rows, np.zeros((1, 1)), np.zeros((1, 1)), None) == share
