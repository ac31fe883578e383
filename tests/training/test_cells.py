"""Many rows in cells, with limits so small that a few hundred are many."""

import copy
import pickle
from collections import deque

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import pistol
from pistol import PistolClassifier, PistolRegressor
from pistol._compiled.threads import workers
from pistol._estimators import base
from pistol._learners import Cells, Patchwork, models
from pistol._learners.storage import Store
from pistol._training import cell_choice, ground, spread_cells, together
from pistol._training import cells as _cells
from pistol._training.fitted import Counts
from pistol._training.forms import FormError, Source, Written
from pistol._training.kernel_family import KernelFamily
from pistol._training.plan import Limits, make_plan
from pistol._training.race import Racer
from pistol._training.saved_cells import TREE
from pistol._training.spread_choice import begin_choice, settled

SMALL = Limits(few=150, sample=80, cell=60, base=150)
MAKERS = {
    "classes": PistolClassifier(random_state=0, metric=False),
    "targets": PistolRegressor(random_state=0, metric=False),
}
both = pytest.mark.parametrize("estimator", MAKERS.values(), ids=MAKERS)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(KernelFamily, "limits", SMALL)


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1, 10, 100, 1]
    return X, np.sin(3 * X[:, 0]) + 0.1 * X[:, 1] * X[:, 3] + 0.1 * rng.normal(size=n)


def data(estimator, n=300, seed=0):
    X, y = rows(n, seed)
    return X, np.digitize(y, [-0.4, 0.4]) if isinstance(estimator, PistolClassifier) else y


def score_of(estimator, X):
    return (
        estimator.decision_function(X) if hasattr(estimator, "classes_") else estimator.predict(X)
    )


def assert_nearer_than_another_seed(models, others, tables):
    """Last bits may choose other kernels in a table of few rows, so nearer in most is all there is."""
    gaps = []
    for model, other, (X, y) in zip(models, others, tables, strict=True):
        seeded = clone(other).set_params(random_state=1).fit(X, y)
        gaps.append([np.abs(score_of(m, X) - score_of(other, X)).mean() for m in (model, seeded)])
    gap, usual = np.median(gaps, axis=0)
    assert gap < 0.5 * usual


@pytest.fixture(scope="module")
def fitted():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KernelFamily, "limits", SMALL)
        return {name: clone(e).fit(*data(e)) for name, e in MAKERS.items()}


def test_cells_are_for_many_rows_of_sums_of_kernels_alone():
    assert make_plan(151, "auto", "auto", SMALL).cell == 60
    assert make_plan(150, "auto", "auto", SMALL).cell == 0
    for plan in (make_plan(151, 3, "auto", SMALL), make_plan(151, "auto", 1, SMALL)):
        assert plan.cell == 0, "what the user sets is done"
    few = clone(MAKERS["targets"]).fit(*rows(150))
    assert not any(isinstance(learner, Cells) for learner in few.fitted_.learners)


@both
def test_the_model_is_a_base_and_one_learner_per_cell(estimator, fitted):
    model = fitted["classes" if isinstance(estimator, PistolClassifier) else "targets"]
    learners = model.fitted_.learners
    assert len(learners) == 2
    assert all(isinstance(learner, Cells) for learner in learners)
    assert all(learner.base is learners[0].base for learner in learners)
    assert isinstance(model.fitted_.model(), Patchwork)
    for learner in learners:
        assert learner.tree.cells >= 5
        assert learner.t == pytest.approx(300 * model.passes_), "every row is learned in each pass"


@both
def test_it_learns_more_than_the_base(estimator):
    """On more rows than the base has seen, the whole is better than the base alone."""
    X, y = data(estimator, 1200)
    X_test, y_test = data(estimator, 1000, seed=1)
    model = clone(estimator).fit(X, y)
    base = clone(model)
    base.fitted_ = model.fitted_.__class__(
        **{
            **{k: v for k, v in vars(model.fitted_).items() if not k.startswith("_")},
            "learners": [learner.fresh() for learner in model.fitted_.learners],
        }
    )
    assert model.score(X_test, y_test) > base.score(X_test, y_test) + 0.02


@both
def test_the_order_of_rows_does_not_matter(estimator):
    tables = [data(estimator, seed=seed) for seed in range(5)]
    order = np.random.default_rng(1).permutation(300)
    again = [clone(estimator).fit(X[order], y[order]) for X, y in tables]
    ours = [clone(estimator).fit(X, y) for X, y in tables]
    assert_nearer_than_another_seed(again, ours, tables)


@both
def test_threads_do_not_matter(estimator, fitted):
    X, y = data(estimator)
    ours = fitted["classes" if isinstance(estimator, PistolClassifier) else "targets"]
    for n_jobs in (1, 3):
        again = clone(estimator).set_params(n_jobs=n_jobs).fit(X, y)
        assert_array_equal(score_of(again, X), score_of(ours, X))


def test_weight_two_is_two_copies(monkeypatch):
    """With fewer rows than these the last bits choose other kernels now and then."""
    monkeypatch.setattr(KernelFamily, "limits", Limits(few=450, sample=300, cell=300, base=450))
    estimator, weight = MAKERS["targets"], np.where(np.arange(900) < 60, 2.0, 1.0)
    tables = [data(estimator, 900, seed=seed) for seed in range(5)]
    weighted = [clone(estimator).fit(X, y, sample_weight=weight) for X, y in tables]
    copied = [clone(estimator).fit(np.vstack([X, X[:60]]), np.append(y, y[:60])) for X, y in tables]
    assert_nearer_than_another_seed(weighted, copied, tables)


def test_sparse_rows_are_learned():
    X, y = data(MAKERS["classes"])
    X = np.where(np.abs(X) < 0.7 * np.array([1, 10, 100, 1]), 0.0, X)
    ours, theirs = (
        clone(MAKERS["classes"]).fit(layout(X), y) for layout in (sp.csr_array, np.asarray)
    )
    assert np.mean(ours.predict(sp.csr_array(X)) == theirs.predict(X)) > 0.9


def test_rows_that_stay_sparse_may_be_predicted_dense():
    X, y = data(MAKERS["classes"])
    n = len(X)
    wide = sp.csr_array((X.ravel(), (np.repeat(np.arange(n), 4), np.tile([0, 9, 99, 4999], n))))
    model = clone(MAKERS["classes"]).fit(wide, y)
    assert sp.issparse(model.support_vectors_)
    assert len(model.fitted_.learners[0].learners) > 1
    assert_allclose(
        model.decision_function(wide.toarray()), model.decision_function(wide), rtol=1e-5, atol=1e-5
    )


def test_attributes_describe_all_cells(fitted):
    for model in fitted.values():
        X, _ = data(model)
        assert_allclose(model.feature_importances_.sum(), 1.0)
        assert model.feature_importances_[2] < 1 / 4, "the third feature says nothing"
        assert sum(model.kernel_weights_.values()) == pytest.approx(1.0)
        assert model.n_support_ == len(model.support_) == len(model.support_vectors_)
        assert model.dual_coef_.shape[1] == model.n_support_
        assert_allclose(model.support_vectors_, X[model.support_], rtol=1e-4, atol=1e-3)
        assert np.isfinite(model.online_error_)
        with pytest.raises(AttributeError, match="single kernel"):
            model.norm_  # noqa: B018


def test_probabilities_are_calibrated(fitted):
    model = fitted["classes"]
    X, y = data(model, 1000, seed=2)
    P = model.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1.0)
    assert abs(P.max(axis=1).mean() - (model.predict(X) == y).mean()) < 0.12


@both
def test_learning_goes_on_and_models_are_pickled(estimator, fitted):
    name = "classes" if isinstance(estimator, PistolClassifier) else "targets"
    X, y = data(estimator, 200, seed=3)
    model, other = (pickle.loads(pickle.dumps(fitted[name])) for _ in range(2))
    assert_array_equal(score_of(model, X), score_of(fitted[name], X))
    before = model.score(X, y)
    model.partial_fit(X, y)
    other.partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    assert model.score(X, y) >= before
    assert (score_of(model, X) != score_of(fitted[name], X)).any()
    assert model.t_ == other.t_ == fitted[name].t_ + 200


def test_a_failed_partial_fit_changes_nothing(fitted, monkeypatch):
    model = pickle.loads(pickle.dumps(fitted["targets"]))
    X, y = data(model, 100, seed=4)
    before = model.predict(X)
    plays = []

    def fails(self, *args, **more):
        plays.append(1)
        if len(plays) > 3:
            raise KeyboardInterrupt
        return original(self, *args, **more)

    from pistol._learners import Dual

    original = Dual._play_block
    monkeypatch.setattr(Dual, "_play_block", fails)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, y)
    assert_array_equal(model.predict(X), before)


def test_rows_that_cannot_be_told_apart_are_learned():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(400, 2)).astype(float)  # four kinds of rows
    y = (X.sum(axis=1) + (rng.random(400) < 0.1)) % 2
    model = PistolClassifier(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    constant = PistolRegressor(random_state=0).fit(np.zeros((400, 2)), rng.normal(size=400))
    assert np.isfinite(constant.predict(np.zeros((1, 2)))).all()
    same = PistolRegressor(random_state=0).fit(rng.normal(size=(400, 2)), np.ones(400))
    assert_allclose(same.predict(X[:3]), 1.0)


def _recorded(X=None, y=None, weight=None):
    """All rows, the cells and the race of a fit."""
    X, y = rows() if X is None else (X, y)
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("probe", "race_in_cell"):
            original = getattr(_cells, name)
            patch.setattr(_cells, name, lambda *args, f=original: (kept.append(args), f(*args))[1])
        clone(MAKERS["targets"]).fit(X, y, sample_weight=weight)
    (ground, cells), (_, cell, *_) = kept
    return ground, cells, cell


def test_the_cell_with_the_most_new_rows_chooses():
    """Held-out loss is of rows that the base has not learned."""
    ground, cells, cell = _recorded()
    assert ground.known.sum() == SMALL.few
    new = [(ground.known[ground.order.rows[own]] == 0).sum() for own in cells]
    assert len(cells) > 1
    assert (ground.known[cell.rows] == 0).sum() == max(new) > 0


def kinds_of_rows(n=900):
    """Few kinds of rows, each with many targets, of which one is frequent."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(n, 3)).astype(float)
    return X, np.where(rng.random(n) < 0.6, 0.0, rng.normal(size=n) + X[:, 0] + 3)


def test_frequent_targets_count_among_held_out_rows_as_often_as_they_occur(monkeypatch):
    """That the base has learned one of many equal rows does not mean that it knows the others."""
    X, y = kinds_of_rows()
    counted = []
    real = cell_choice._new
    monkeypatch.setattr(
        cell_choice,
        "_new",
        lambda *args: (counted.append((args[0], real(*args))), counted[-1][1])[1],
    )
    ground, _, cell = _recorded(X, y)
    ((before, now),) = counted
    usual = y[cell.rows] == 0
    assert 0 < now.sum() < before.sum()
    held = ground.known[cell.rows][usual]
    assert ((held > 0) & (held < 1)).any()
    # what is left out of the loss is about the share of all rounds that the base has learned
    share = SMALL.few / len(y)
    assert abs(1 - now.sum() / before.sum() - share) < share


def test_what_the_base_knows_of_copies():
    """Copies of one observation are known together; a row with several targets is known in part."""
    counted, copy_of = np.ones(6), np.array([0, 0, 1, 7, 8, 9])
    known = np.array([0.5, 0.5, 0.0, 0.25, 0.25, 1.0])
    assert_array_equal(cell_choice._new(counted, known, copy_of), [0, 0, 1, 0.75, 0.75, 0])
    every = cell_choice._new(counted, np.ones(6), copy_of)
    assert_array_equal(every, counted, "where nothing is new, all rounds count")


def test_copies_and_weights_are_known_alike():
    X, y = kinds_of_rows()
    weight = np.where(np.arange(len(y)) < 100, 2.0, 1.0)
    weighted, *_ = _recorded(X, y, weight)
    copied, *_ = _recorded(np.vstack([X, X[:100]]), np.append(y, y[:100]))
    assert_array_equal(weighted.known, copied.known[: len(y)])


@both
@pytest.mark.parametrize("metric", [False, True])
def test_blocks_know_the_rows_that_the_base_has_learned(estimator, metric, monkeypatch):
    """On a cluster each block is scaled by itself, and must come to the very same numbers."""
    given = []
    train = base.train
    monkeypatch.setattr(base, "train", lambda *args: (given.append(args), train(*args))[1])
    estimator = clone(estimator).set_params(metric=metric).fit(*data(estimator))
    block, problem, setup, _ = given[0]
    n = len(block.weight)
    plan = make_plan(n, "auto", "auto", SMALL, *block.X.shape[1:], block.Y.shape[1])
    start = begin_choice(block, problem, setup, plan, Counts(n, n, 1.0), float(n), None)
    shared = settled(start)
    (first, *_) = spread_cells.split(shared, block)
    assert sum(rows.known.sum() for rows in first.values()) == SMALL.few


@both
def test_a_file_holds_all_cells(estimator, fitted, tmp_path):
    name = "classes" if isinstance(estimator, PistolClassifier) else "targets"
    X, y = data(estimator, 200, seed=5)
    model, path = pickle.loads(pickle.dumps(fitted[name])), tmp_path / "model"
    model.save(path)
    loaded = pistol.load(path)
    assert_array_equal(score_of(loaded, X), score_of(model, X))
    for each in (model, loaded):
        each.partial_fit(X, y)
    assert_array_equal(score_of(loaded, X), score_of(model, X))
    model.save(path, predict_only=True)
    # learned rows are at the kink of exponential kernels, where float32 shows most
    assert_allclose(score_of(pistol.load(path), X), score_of(model, X), rtol=1e-4, atol=1e-4)


def test_a_forged_tree_is_refused(fitted):
    found = fitted["targets"].fitted_
    tree, sizes = found.learners[0].tree, {"d": found.scaler.features}
    loops = tree._replace(children=np.zeros_like(tree.children))
    twice = tree._replace(children=np.where(tree.feature[:, None] < 0, 0, tree.children))
    wide = tree._replace(feature=np.full_like(tree.feature, sizes["d"]))
    for forged in (loops, twice, wide):
        written = Written()
        with pytest.raises(FormError):
            TREE.read(TREE.write(forged, written), Source(written.arrays, sizes))
    written = Written()
    again = TREE.read(TREE.write(tree, written), Source(written.arrays, sizes))
    assert_array_equal(again.children, tree.children)


def test_of_sums_that_are_as_good_the_simplest_is_chosen():
    candidates = [(None,) * 2, (None,) * 8, (None,) * 3]
    for losses, best in (((1.2, 1.0, 1.005), 2), ((1.009, 1.0, 1.2), 0), ((2.0, 1.0, 1.02), 1)):
        racers = [Racer(i, [], best=loss) for i, loss in enumerate(losses)]
        assert cell_choice._simplest(racers, candidates).number == best
    same = [Racer(0, [], best=1.001), Racer(2, [], best=-1.0), Racer(2, [], best=-1.001)]
    assert cell_choice._simplest(same, candidates) is same[2]


def _rows_of(model):
    return [own.support.rows for tree in model.fitted_.learners for own in tree.learners]


@both
def test_rows_that_are_kept_once_change_nothing(estimator, fitted, monkeypatch, tmp_path):
    """Neither predictions, nor what is learned on, nor files and copies."""
    theirs = fitted["classes" if isinstance(estimator, PistolClassifier) else "targets"]
    X, y = data(estimator)
    monkeypatch.setattr(_cells, "MANY", 0)
    monkeypatch.setattr(_cells, "COPIED", 0)
    ours = clone(estimator).fit(X, y)
    matrices = {id(rows.matrix): rows.matrix for rows in _rows_of(ours)}
    assert len(matrices) == 1, "one for all cells of all trees"
    assert next(iter(matrices.values())).shape[0] == 300
    assert all(isinstance(rows, Store) for rows in _rows_of(theirs))
    assert_array_equal(score_of(ours, X), score_of(theirs, X))
    assert_array_equal(ours.support_, theirs.support_)
    assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    assert_array_equal(ours.feature_importances_, theirs.feature_importances_)
    assert len(pickle.dumps(ours)) == len(pickle.dumps(theirs))
    more = data(estimator, 50, seed=5)
    expected = copy.deepcopy(theirs).partial_fit(*more)
    for predict_only in (False, True):
        paths = [tmp_path / f"{name}{predict_only}" for name in ("ours", "theirs")]
        for model, path in zip((ours, theirs), paths, strict=True):
            model.save(path, predict_only=predict_only)
        assert len({path.stat().st_size for path in paths}) == 1
        loaded = [pistol.load(path) for path in paths]
        assert_array_equal(*(score_of(model, X) for model in loaded))
    for again in (pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours), ours):
        assert_array_equal(score_of(again.partial_fit(*more), X), score_of(expected, X))


@both
def test_many_rows_are_predicted_alike_however_support_rows_are_kept(
    estimator, fitted, monkeypatch
):
    """In blocks, each with rows of one cell; whether cells have rows of their own or share them."""
    theirs = fitted["classes" if isinstance(estimator, PistolClassifier) else "targets"]
    X, y = data(estimator)
    monkeypatch.setattr(_cells, "MANY", 0)
    monkeypatch.setattr(_cells, "COPIED", 0)
    ours = clone(estimator).fit(X, y)
    expected = score_of(theirs, X)
    monkeypatch.setattr(models, "BLOCK", 7)
    for model in (theirs, ours):
        assert_allclose(score_of(model, X), expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(("many", "copied"), [(0, 0), (2**24, 0), (2**24, 2**22)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_does_not_look_at_the_rows_it_was_given_any_more(many, copied, dtype, monkeypatch):
    monkeypatch.setattr(_cells, "MANY", many)
    monkeypatch.setattr(_cells, "COPIED", copied)
    X, y = data(MAKERS["classes"])
    given = X.astype(dtype)
    model = clone(MAKERS["classes"]).fit(given, y)
    given[:] = np.nan
    again = clone(MAKERS["classes"]).fit(X.astype(dtype), y)
    assert_array_equal(score_of(model, X), score_of(again, X))


def test_few_support_rows_are_not_kept_with_all_others(monkeypatch):
    """Where labels are clear most rows are learned without a gradient."""
    monkeypatch.setattr(_cells, "MANY", 0)
    monkeypatch.setattr(_cells, "COPIED", 0)
    monkeypatch.setattr(together, "few_gradients", lambda work: False)  # cells alone
    X, _ = rows()
    model = clone(MAKERS["classes"]).set_params(loss="hinge").fit(X, X[:, 0] > 0)
    assert sum(own.support.ids.n for tree in model.fitted_.learners for own in tree.learners) < 300
    assert all(isinstance(rows, Store) for rows in _rows_of(model))


@both
def test_the_base_is_known_where_it_was_learned(estimator):
    """Its scores at rows that it has learned come from kernel values that are in memory."""
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        real = _cells.learn_base
        patch.setattr(_cells, "learn_base", lambda *args: (kept.append(args), real(*args))[1])
        clone(estimator).fit(*data(estimator))
    ((*args, _),) = kept
    with workers(1) as threads:
        base, X = real(*args, threads), args[0].in_memory().data.X
    assert 0 < len(base.rows) < len(X)
    found = base.decide(X, args[0].hashes)
    assert_allclose(found, base.model.decide(X), rtol=1e-4, atol=1e-4)
    if not base.model.is_polynomial:
        assert_array_equal(found[base.rows], base.scores)


@both
def test_cells_of_any_tree_may_be_learned_first(estimator, fitted, monkeypatch):
    theirs = fitted["classes" if isinstance(estimator, PistolClassifier) else "targets"]
    X, y = data(estimator)

    def last_first(sizes, threads):
        return ([deque([cell])] for cell in reversed(range(len(sizes))))

    monkeypatch.setattr(_cells, "turns", last_first)
    ours = clone(estimator).fit(X, y)
    assert_array_equal(score_of(ours, X), score_of(theirs, X))
    assert ours.online_error_ == theirs.online_error_


def test_of_a_large_cell_some_rounds_choose(monkeypatch):
    ground, cells, cell = _recorded()
    monkeypatch.setattr(cell_choice, "ENOUGH", 20)
    some = cell_choice.probe(ground, cells)
    assert len(some.rounds.rows) == 20 < len(cell.rounds.rows)
    assert set(some.rows) < set(cell.rows)


@both
def test_rows_that_are_made_when_asked_for_are_learned_alike(estimator, fitted, monkeypatch):
    """Where there are few, all of them are in memory."""
    monkeypatch.setattr(_cells, "MANY", 0)
    X, y = data(estimator)
    theirs = fitted["classes" if isinstance(estimator, PistolClassifier) else "targets"]
    assert_array_equal(score_of(clone(estimator).fit(X, y), X), score_of(theirs, X))


def test_the_centre_of_a_cell_without_rows_is_a_number():
    assert_array_equal(ground._centre(np.zeros((0, 3), np.float32)), np.zeros(3))
