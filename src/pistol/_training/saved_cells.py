"""How cells are written: trees, and what their cells have learned; and so all learners there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._learners import Cells, Finished, Patchwork
from .._learners.cells import Parts
from .._learners.forest import Forest, Trees
from .._learners.trees import Tree
from .forms import REALS, Many, Maybe, Numbers, OneOf, Record, Source
from .saved_learners import (
    COORDINATES,
    DUAL,
    EXPANSION,
    JOBS,
    LINEAR,
    NOT_NEGATIVE,
    PRIMAL,
    check_model,
)

OWN = ("n", "f", "Q")  # a cell has kernels of its own
CENTRES = Many(Numbers(("d",), REALS, -1e200, 1e200), low=1)
MODEL, LEARNER = replace(EXPANSION, own=OWN), replace(DUAL, own=OWN)


def _check_tree(tree: Tree, source: Source) -> None:
    """Every node leads on to later ones, so that all rows come to a cell."""
    inner = tree.feature >= 0
    source.demand(tree.feature.max() < source.sizes["d"], "looks at features that do not exist")
    first = np.flatnonzero(inner)[:, None]
    later = (tree.children[inner] > first) & (tree.children[inner] < len(inner))
    source.demand(later.all(), "has nodes that lead nowhere")
    numbers = np.sort(tree.children[~inner], axis=0)
    one_each = (numbers == np.arange(len(numbers))[:, None]).all()
    same = (tree.children[~inner, 0] == tree.children[~inner, 1]).all()
    source.demand(len(numbers) and one_each and same, "has cells without a number of their own")


TREE = Record(
    "tree", Tree,
    {
        "feature": Numbers(("N",), ("int64",), -1, 2**31), "threshold": Numbers(("N",)),
        "children": Numbers(("N", 2), ("int64",), 0, 2**53),
    },
    own=("N",), check=_check_tree,
)  # fmt: skip


def _check_trees(trees: Trees, source: Source) -> None:
    """Every node leads on to later ones, and one way leads to each, so that all rows come to a leaf."""
    inner = np.flatnonzero(trees.feature >= 0)
    source.demand(trees.feature.max() < source.sizes["d"], "looks at features that do not exist")
    child = trees.child[inner]
    later = (child > inner) & (child + 1 < len(trees.feature))
    source.demand(later.all(), "has nodes that lead nowhere")
    ways = np.sort(np.concatenate([trees.roots, child, child + 1]))
    source.demand(
        np.array_equal(ways, np.arange(len(trees.feature))), "has nodes without a way there"
    )


NUMBERS_OF_NODES = Numbers(("N",), ("int32",), -1, 2**31 - 2)
TREES = Record(
    "trees", Trees,
    {
        "roots": Numbers(("T",), ("int32",), 0, 2**31 - 2), "feature": NUMBERS_OF_NODES,
        "threshold": Numbers(("N",), ("float32",)), "child": NUMBERS_OF_NODES,
    },
    check=_check_trees,
)  # fmt: skip
FOREST = Record(
    "forest", Forest,
    {"trees": TREES, "value": Numbers(("N", "K"), low=-1e200, high=1e200), "n_jobs": JOBS},
    own=("N", "T"),
)  # fmt: skip


def _check_counts(parts: Any, each: Any, source: Source) -> None:
    """One of each for every cell."""
    counts = {len(parts.centres), len(each), parts.tree.cells}
    source.demand(len(counts) == 1, "has other cells than its tree")


PARTS = Record(
    "parts", Parts, {"tree": TREE, "centres": CENTRES, "models": Many(MODEL, low=1)},
    check=lambda parts, source: _check_counts(parts, parts.models, source),
)  # fmt: skip


def _check_patchwork(model: Patchwork, source: Source) -> None:
    everything = [model.base, *(one for part in model.parts for one in part.models)]
    kinds = {sp.issparse(one.rows) for one in everything if len(one.ids)}
    source.demand(len(kinds) <= 1, "has both dense and sparse rows")
    finite = all(
        bool((np.abs(x) <= 1e200).all())
        for one in everything
        for x in (one.coef, one.offset)
        if x is not None
    )
    source.demand(finite, "is no finite function")


PATCHWORK = Record(
    "patchwork", Patchwork,
    {"base": MODEL, "parts": Many(PARTS, tuple, low=1), "forest": Maybe(FOREST)},
    check=_check_patchwork,
)  # fmt: skip


def _check_cells(cells: Cells, source: Source) -> None:
    _check_counts(cells, cells.learners, source)
    _check_patchwork(cells.model(), source)


CELLS = Record(
    "cells", Cells,
    {
        "tree": TREE, "centres": CENTRES, "learners": Many(LEARNER, low=1), "base": MODEL,
        "forest": Maybe(FOREST),
    },
    check=_check_cells,
)  # fmt: skip
FINISHED = Record(
    "finished", Finished,
    {"made": OneOf((LINEAR, EXPANSION, PATCHWORK)), "t": NOT_NEGATIVE}, check=check_model,
)  # fmt: skip
LEARNING = OneOf((DUAL, PRIMAL, COORDINATES, CELLS))
LEARNERS = OneOf((*LEARNING.records, FINISHED))
