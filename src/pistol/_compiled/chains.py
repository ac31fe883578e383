"""Sums of lines of kernel values, for all kernels of a sum.

The kernels of a sum are a few chains: in each, values of the first kernel are in memory, and those of
the next are made from them by products or by fourth powers, in registers, where they are used at once.
Lines are as long as some whole vectors, and totals stay in registers from the first row to the last.
"""

from __future__ import annotations

from .cache import plain
from .exp import LEAST
from .lanes import every, lanes, larger, load, store
from .prefetch import prefetch_once
from .types import ALONE, CONSTANT, POWERS, PRODUCTS

AHEAD = 64  # values of a line from the request for a vector to its use


@plain(forceinline=True)
def _part(line, x):
    """The vector at x. One further on is asked for: no processor follows so many lines by itself."""
    prefetch_once(line, x + AHEAD)
    return load(line, x)


@plain(forceinline=True)
def _to_fourth(v, least):
    """v⁴ of values of an exponential, as `fourth_power`."""
    large = larger(v, least)
    square = large * large
    return square * square


@plain
def next_values(v, first, kind, out):
    """From values of a kernel of a chain to those of the next."""
    least = every(load(v, 0), v.dtype.type(LEAST))
    for x in range(0, len(out), lanes(out)):
        at = load(v, x)
        store(out, x, at * load(first, x) if kind == PRODUCTS else _to_fourth(at, least))


@plain
def _add_constant(coef, g):
    """g += Σ coef[k]."""
    total = g.dtype.type(0.0)
    for s in coef:
        total += s
    for x in range(0, len(g), lanes(g)):
        at = load(g, x)
        store(g, x, at + every(at, total))


@plain
def _add_values(M, rows, coef, g):
    """g += Σ coef[k] v, with v the line M[rows[k]]."""
    for x in range(0, len(g), lanes(g)):
        at = load(g, x)
        for k in range(len(rows)):
            at = at + every(at, coef[k]) * _part(M[rows[k]], x)
        store(g, x, at)


@plain
def _add_products(M, rows, coef, g, g_2, g_3):
    """The same for values and their squares and cubes."""
    for x in range(0, len(g), lanes(g)):
        at, at_2, at_3 = load(g, x), load(g_2, x), load(g_3, x)
        for k in range(len(rows)):
            v, s = _part(M[rows[k]], x), every(at, coef[k])
            v_2 = v * v
            at, at_2, at_3 = at + s * v, at_2 + s * v_2, at_3 + s * (v * v_2)
        store(g, x, at)
        store(g_2, x, at_2)
        store(g_3, x, at_3)


@plain
def _add_powers(M, rows, coef, g, g_4, g_16, g_64):
    """The same for values and their fourth, 16th and 64th powers."""
    least = every(load(g, 0), g.dtype.type(LEAST))
    for x in range(0, len(g), lanes(g)):
        at, at_4, at_16, at_64 = load(g, x), load(g_4, x), load(g_16, x), load(g_64, x)
        for k in range(len(rows)):
            v, s = _part(M[rows[k]], x), every(at, coef[k])
            v_4 = _to_fourth(v, least)
            v_16 = _to_fourth(v_4, least)
            at, at_4 = at + s * v, at_4 + s * v_4
            at_16, at_64 = at_16 + s * v_16, at_64 + s * _to_fourth(v_16, least)
        store(g, x, at)
        store(g_4, x, at_4)
        store(g_16, x, at_16)
        store(g_64, x, at_64)


@plain
def add_rounds(values, rows, coef, j, g, spare):
    """Line 8 at every row, for some rounds: g[q, j] += Σ coef[k] k_q(rows[k], ·).

    Chains that are shorter than the longest of their kind write to `spare` what they do not have.
    """
    for chain in range(len(values.chains)):
        q, count, number, kind = values.chains[chain]
        if kind == CONSTANT:
            _add_constant(coef, g[q, j])
            continue
        M, third = values.matrices[number], g[q + 2, j] if count > 2 else spare[0]
        if kind == ALONE:
            _add_values(M, rows, coef, g[q, j])
        elif kind == PRODUCTS:
            _add_products(M, rows, coef, g[q, j], g[q + 1, j], third)
        else:
            fourth = g[q + 3, j] if count > 3 else spare[1]
            _add_powers(M, rows, coef, g[q, j], g[q + 1, j], third, fourth)


@plain
def _add_polynomials(M, rows, f, first, out):
    """out += Σ f[0, k] v + f[1, k] v² + f[2, k] v³, with v the line M[rows[k]] from `first` on."""
    for x in range(0, len(out), lanes(out)):
        at = load(out, x)
        for k in range(len(rows)):
            v = _part(M[rows[k]], first + x)
            later = every(at, f[1, k]) + v * every(at, f[2, k])
            at = at + v * (every(at, f[0, k]) + v * later)
        store(out, x, at)


@plain
def _add_fourth_powers(M, rows, f, first, out):
    """out += Σ f[0, k] v + f[1, k] v⁴ + f[2, k] v¹⁶ + f[3, k] v⁶⁴, likewise."""
    least = every(load(out, 0), out.dtype.type(LEAST))
    for x in range(0, len(out), lanes(out)):
        at = load(out, x)
        for k in range(len(rows)):
            v = _part(M[rows[k]], first + x)
            v_4 = _to_fourth(v, least)
            v_16 = _to_fourth(v_4, least)
            near = every(at, f[0, k]) * v + every(at, f[1, k]) * v_4
            far = every(at, f[2, k]) * v_16 + every(at, f[3, k]) * _to_fourth(v_16, least)
            at = at + (near + far)
        store(out, x, at)


@plain
def add_rows(values, rows, factors, first, out, four):
    """out[x] += Σ_q Σ_k factors[k, q] k_q(rows[k], first + x).

    `four` has room for the factors of a chain, which are zero for kernels that it does not have.
    """
    for chain in range(len(values.chains)):
        q, count, number, kind = values.chains[chain]
        for p in range(len(four)):
            for k in range(len(rows)):
                four[p, k] = factors[k, q + p] if p < count else 0.0
        if kind == CONSTANT:
            _add_constant(four[0, : len(rows)], out)
        elif kind == POWERS:
            _add_fourth_powers(values.matrices[number], rows, four, first, out)
        else:
            _add_polynomials(values.matrices[number], rows, four, first, out)
