"""The bounds at work: sequences that mean harm, and how near the guarantees they come."""

from __future__ import annotations

from typing import Any

from ...protocol import Found, Job
from ..sections import Picture, Section
from . import claims, pictures
from .batches import EVERY, MAX_FEATURES, batch, mistakes, together
from .claims import KINDS, NORMS, STREAMS, sequences
from .growth import FEATURES, over_time, round_times, scale, stream
from .hostile import MOST_ROUNDS

# sequences in all, and in a job
FULL = {"PiSTOL": (80_000, 5_000), "per coordinate": (40_000, 5_000), "kernel": (4_000, 1_000)}
QUICK = {"PiSTOL": (300, 300), "per coordinate": (150, 150), "kernel": (50, 50)}
ROUNDS = {False: (5000, 100_000, 20_000), True: (1000, 10_000, 3000)}  # over time, streams, norms
MISTAKES = {False: (30_000, 5_000), True: (150, 150)}
SHOWN = {  # opponent, loss, features, norm of h
    "points at right angles to g": ("orthogonal", "hinge", 50, 1.0),
    "the worst of four points": ("worst_of_several", "hinge", 3, 1.0),
    "one point, alternating labels": ("alternating", "hinge", 1, 1.0),
    "separable, the worst of four points": ("separable", "smooth_hinge", 3, 5.0),
}
TIMED = {"Gaussian kernel": (3000, 20, True), "linear, 100 features": (40_000, 100, False)}


def jobs(quick: bool) -> list[Job]:
    """Batches of hostile sequences, streams, and times."""
    return [
        *(Job(_time_name(name), round_times, TIMED[name], alone=True) for name in TIMED),
        *(Job(_batch_name(k, lo, n), batch, (k, lo, n)) for k, lo, n in _batches(quick)),
        *(Job(_batch_name("Perceptron", lo, n), mistakes, (lo, n)) for lo, n in _mistakes(quick)),
        *(Job(_shown_name(name, quick), over_time, _shown(name, quick)) for name in SHOWN),
        *(Job(_stream_name(name, quick), stream, _stream(name, quick)) for name in STREAMS),
        *(Job(_scale_name(norm, quick), scale, (norm, ROUNDS[quick][2], 0)) for norm in NORMS),
    ]


def section(found: Found, quick: bool) -> Section:
    """What came of them."""
    played = {
        kind: together([found[_batch_name(*b)] for b in _batches(quick) if b[0] == kind])
        for kind in KINDS
    }
    merged = {kind: cells["a"] for kind, cells in played.items()}
    perceptron = together([found[_batch_name("Perceptron", *b)] for b in _mistakes(quick)])
    everyone = played | {"Perceptron": perceptron}
    streams = {name: found[_stream_name(name, quick)] for name in STREAMS}
    scales = [found[_scale_name(norm, quick)] for norm in NORMS]
    times = {name: found[_time_name(name)] for name in TIMED}
    counts = {KINDS[kind]: sequences(cells) for kind, cells in merged.items()}
    counts["Perceptron"] = perceptron["sequences"]
    total = sum(counts.values())
    return Section(
        key="bounds",
        title="The bounds at work",
        parts=[
            f"{total:,} sequences were played against the learners of this library "
            f"({', '.join(f'{n:,} {name}' for name, n in counts.items())}): random ones, and opponents "
            "that look at f_t before they choose a point and a label. **Theorem 1 is about "
            "any h**, so each sequence was judged by the h that is worst for the bound. For the "
            "linearised regret Σ s_t (f_t(x_t) - h(x_t)), which is never less than the regret, that h "
            "lies along g_T and its norm is found exactly (per coordinate, weight by weight). "
            f"One in {EVERY}, where h has at most {MAX_FEATURES} weights and the loss is not linear, "
            "was judged by its true regret, too, against the h that a convex solver found. Losses: all "
            "of the library, and the linear one. b from 10⁻³ to 10³ (1/d per coordinate), "
            f"1 to {MOST_ROUNDS['PiSTOL']} rounds ({MOST_ROUNDS['kernel']} with the Gaussian kernel), "
            "evenly on a logarithmic scale.",
            Picture(
                "regret-over-time",
                "Regret and bound",
                "The regret after each round (blue) beneath Theorem 1 (dashed) for a = 3 L, b = 1, "
                "against the h along g_T of norm 1, or 5 in the last panel. At right angles to g every "
                "f_t(x_t) is 0, and in the end the regret is √T, which no learner escapes. An opponent "
                "that always takes the largest loss leaves no h that does much better. Where some h "
                "is right about all points, the regret grows ever more slowly.",
                pictures.over_time({k: found[_shown_name(k, quick)] for k in SHOWN}),
                "Four panels of regret (solid) and bound (dashed) over rounds.",
            ),
            Picture(
                "regret-over-bound",
                "How near the bounds are",
                "The largest share of the bound that the linearised regret against any h reached, by "
                "opponent, for a ≥ 3 L; for the Perceptron, mistakes over the bound (5). None may "
                "exceed 1.",
                pictures.ratios({KINDS.get(k, k): c["opponent"] for k, c in everyone.items()}),
                "Ranges of regret over bound for each opponent and learner, with a line at 1.",
            ),
            claims.table(merged),
            claims.about_phi(merged),
            Picture(
                "regret-growth",
                "Growth of the regret",
                "Left: smoothed hinge, points with a margin of 0.2, so that an h of norm 5 suffers "
                "nothing; the paper claims at most T^(1/3). Right: the absolute loss with targets "
                f"⟨u, x⟩, {ROUNDS[quick][2]:,} rounds, {FEATURES} features; the paper claims a growth "
                "with the norm for PiSTOL, with its square for AdaGrad.",
                pictures.growth(
                    dict(list(streams.items())[:2]),
                    NORMS, [s["pistol"] for s in scales], [s["adagrad"] for s in scales],
                ),
                "Left, regret over rounds and Corollary 1; right, regret over the norm, two learners.",
            ),
        ],
        claims=[
            claims.theorem_1(merged),
            claims.as_printed(merged),
            claims.depends_on_gradients(streams),
            claims.corollary_1(streams),
            *claims.appendix_a(merged["per coordinate"], scales),
            claims.perceptron(perceptron),
            claims.complexity(times),
        ],
    )  # fmt: skip


# Jobs by name, and what those of a kind found.


def _batches(quick: bool) -> list[tuple[str, int, int]]:
    sizes = QUICK if quick else FULL
    return [(kind, lo, n) for kind, (total, n) in sizes.items() for lo in range(0, total, n)]


def _mistakes(quick: bool) -> list[tuple[int, int]]:
    total, n = MISTAKES[quick]
    return [(lo, n) for lo in range(0, total, n)]


def _batch_name(kind: str, lo: int, n: int) -> str:
    return f"bounds/hostile/{kind}/sequences {lo} to {lo + n - 1}"


def _time_name(name: str) -> str:
    rows, features, _ = TIMED[name]
    return f"bounds/time of a round/{name}/rows {rows}/features {features}"


def _shown(name: str, quick: bool) -> tuple[Any, ...]:
    opponent, loss, d, norm = SHOWN[name]
    return opponent, loss, ROUNDS[quick][0], d, norm, 0


def _shown_name(name: str, quick: bool) -> str:
    opponent, loss, T, d, norm, seed = _shown(name, quick)
    return f"bounds/over time/{opponent}/{loss}/rounds {T}/features {d}/norm {norm:g}/seed {seed}"


def _stream(name: str, quick: bool) -> tuple[Any, ...]:
    return *STREAMS[name], ROUNDS[quick][1], 0


def _stream_name(name: str, quick: bool) -> str:
    flipped, several, T, seed = _stream(name, quick)
    return f"bounds/stream/flipped {flipped:g}/worst of {several}/rounds {T}/seed {seed}"


def _scale_name(norm: float, quick: bool) -> str:
    return f"bounds/norm {norm:g}/rounds {ROUNDS[quick][2]}/seed 0"
