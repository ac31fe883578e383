"""What the claims of section 7 came to, each by a stated rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...protocol import Array
from ..sections import Claim, Verdict
from .figure3 import HOURS, IN_WORDS, MATLAB_HOURS, SPEEDUP, SVM, Panel, points, seconds
from .trials import DEFAULTS, FOLDS, LAST, PISTOL, READINGS, WEIGHTED

WHERE = "Section 7"
CLOSE, NEAR = 0.01, 0.03  # errors that far apart track closely, or with a caveat
FEW = 300  # rows
NEWS_TEXT, NEWS_APPENDIX = 1_355_192, 1_355_191


def claims(a9a: Panel, sensit: Panel, news: Panel) -> list[Claim]:
    """All of them."""
    gaussian, others = (a9a, sensit), (a9a, news)
    return [
        *(_marked(_tracks(reading, gaussian), gaussian) for reading in READINGS),
        _marked(_few(gaussian), gaussian),
        _marked(_promises(a9a), [a9a]),  # its test rows are like those of the folds
        _marked(_rate(news), [news]),
        _marked(_constant(news), [news]),
        _marked(_faster(sensit), [sensit]),
        _marked(_similar(others), others),
        _marked(_slower((a9a, sensit, news)), (a9a, sensit, news)),
        _marked(_spread((a9a, sensit, news)), (a9a, sensit, news)),
        *([] if news.problem.stand_in else [_features(news)]),
        _no_search(a9a, sensit, news),
    ]


def _marked(claim: Claim, panels: Sequence[Panel]) -> Claim:
    """A claim that was tried on other data than the paper's is said to be."""
    labels = [p.label for p in panels if p.problem.stand_in]
    if not labels:
        return claim
    verdict = "holds with a caveat" if claim.verdict == "holds" else claim.verdict
    return replace(claim, measured=f"{claim.measured} ({'; '.join(labels)})", verdict=verdict)


def _tracks(reading: str, panels: Sequence[Panel]) -> Claim:
    gaps = [p.gap(reading) for p in panels]
    parts = "; ".join(
        f"{p.problem.source}: {points(gap[-1])} points with {p.rows[-1]:,} rows, "
        f"{points(gap.min())} to {points(gap.max())} over all sizes ({_close(gap)} there)"
        for p, gap in zip(panels, gaps, strict=True)
    )
    return Claim(
        WHERE,
        f"With a Gaussian kernel PiSTOL closely tracks the tuned SVM. Read as {IN_WORDS[reading]}"
        + ("." if reading == PISTOL else ", of which the paper does not speak."),
        f"PiSTOL's mean error minus the SVM's: {parts}. Within one point at all sizes is close, within "
        "three close with a caveat.",
        _close(np.concatenate(gaps)),
    )


def _close(gap: Array) -> Verdict:
    worst = float(np.abs(gap).max())
    if worst <= CLOSE:
        return "holds"
    return "holds with a caveat" if worst <= NEAR else "does not hold"


def _few(panels: Sequence[Panel]) -> Claim:
    small = [(p, i, n) for p in panels for i, n in enumerate(p.rows) if n <= FEW]
    gaps = {m: [p.errors[m][:, i] - p.errors[SVM][:, i] for p, i, _ in small] for m in READINGS}
    ahead = {m: [float(gap.mean()) < 0 for gap in gaps[m]] for m in READINGS}
    found = "; ".join(
        f"{p.problem.source}, {n} rows: {points(gap.mean())} ± {100 * _error(gap):.2f}"
        for (p, _, n), gap in zip(small, gaps[PISTOL], strict=True)
    )
    verdict: Verdict = (
        "holds"
        if all(ahead[PISTOL])
        else "holds with a caveat"
        if any(ahead[PISTOL])
        else "does not hold"
    )
    return Claim(
        WHERE,
        "PiSTOL has an advantage over the tuned SVM when samples are few.",
        f"PiSTOL's error minus the SVM's in points ± standard error: {found}. Few is up to "
        f"{FEW} rows; to be ahead in some of these cases only is a caveat. (Read with weight t PiSTOL "
        f"is ahead in {sum(ahead[WEIGHTED])} of {len(small)} cases, read as the last f_t in "
        f"{sum(ahead[LAST])}.)",
        verdict,
    )


def _promises(p: Panel) -> Claim:
    far = np.abs(p.promised - p.errors[SVM]).mean(axis=0)
    return Claim(
        WHERE,
        "With few samples cross-validation is a poor approximation of the error (given as probable).",
        f"On {p.problem.source}, what cross-validation expected and the SVM's test error are "
        f"{100 * far[0]:.1f} points apart with {p.rows[0]:,} rows and {100 * far[-1]:.1f} with "
        f"{p.rows[-1]:,}. Farther apart with few rows is all that is asked, and whether it is why "
        "PiSTOL is ahead is not tested: a caveat at best.",
        "holds with a caveat" if far[0] > far[-1] else "does not hold",
    )


def _rate(news: Panel) -> Claim:
    slopes = {m: np.array([_slope(news.rows, e) for e in news.errors[m]]) for m in (PISTOL, SVM)}
    gap = slopes[PISTOL] - slopes[SVM]
    same = abs(gap.mean()) <= 2 * _error(gap)
    nearly = gap.mean() <= 0.1
    verdict: Verdict = "holds" if same else "holds with a caveat" if nearly else "does not hold"
    return Claim(
        WHERE,
        "On news20 with a linear kernel PiSTOL seems to converge at the rate of the SVM.",
        f"Error falls with rows to the power {_minus(slopes[PISTOL].mean())} ± "
        f"{_error(slopes[PISTOL]):.3f} (PiSTOL) and {_minus(slopes[SVM].mean())} ± "
        f"{_error(slopes[SVM]):.3f} (SVM). It holds if these are the same within two standard "
        "errors of their difference; that PiSTOL's falls faster, or slower by up to 0.1, is a caveat.",
        verdict,
    )


def _constant(news: Panel) -> Claim:
    ratio = news.errors[PISTOL].mean(axis=0) / news.errors[SVM].mean(axis=0)
    return Claim(
        WHERE,
        "On news20 PiSTOL has a worse constant than the SVM.",
        f"PiSTOL's error is {ratio.min():.2f} to {ratio.max():.2f} times the SVM's over all sizes, "
        f"{ratio[-1]:.2f} times with {news.rows[-1]:,} rows; with our defaults "
        f"{(news.errors[DEFAULTS].mean(axis=0) / news.errors[SVM].mean(axis=0))[-1]:.2f} times. "
        "To be worse with most rows, but not at all sizes, is a caveat.",
        "holds" if ratio.min() > 1 else "holds with a caveat" if ratio[-1] > 1 else "does not hold",
    )


def _faster(sensit: Panel) -> Claim:
    ratio, rows = sensit.ratio[-1], sensit.rows[-1]
    return Claim(
        WHERE,
        f"On 58,000 rows of SensIT Vehicle PiSTOL takes less than {MATLAB_HOURS} hour, the SVM with "
        f"its cross-validation ∼{HOURS} hours: ∼{SPEEDUP} times faster.",
        f"{ratio:,.0f} times faster on {rows:,} rows: {seconds(sensit.cpu[PISTOL][-1])} against "
        f"{seconds(sensit.cpu[SVM][-1])} of processor time; our defaults, which choose the kernel too, "
        f"{sensit.cpu[SVM][-1] / sensit.cpu[DEFAULTS][-1]:,.1f} times. Hours are those of another "
        f"machine; what is judged is {SPEEDUP} times or more.",
        "holds" if ratio >= SPEEDUP else "does not hold",
    )


def _similar(panels: Sequence[Panel]) -> Claim:
    found = "; ".join(
        f"{p.problem.source}: {p.ratio[-1]:,.0f} times with {p.rows[-1]:,} rows" for p in panels
    )
    return Claim(
        WHERE,
        "The gains in speed are similar on the other two data sets.",
        f"{found}. Similar is taken as {SPEEDUP} times or more.",
        "holds" if all(p.ratio[-1] >= SPEEDUP for p in panels) else "does not hold",
    )


def _slower(panels: Sequence[Panel]) -> Claim:
    shares = [float(p.searching[-1] / p.cpu[SVM][-1]) for p in panels]
    found = ", ".join(
        f"{100 * share:.0f} % on {p.problem.source}"
        for p, share in zip(panels, shares, strict=True)
    )
    return Claim(
        "Section 1",
        "Cross-validation makes training slower and so takes away part of what is gained by SGD.",
        f"Of the SVM's time with most rows the search takes {found}. Less than half is a caveat.",
        "holds" if min(shares) > 0.5 else "holds with a caveat",
    )


def _spread(panels: Sequence[Panel]) -> Claim:
    falls, found = [], []
    for p in panels:
        spread = p.errors[PISTOL].std(axis=0, ddof=1)
        falls.append(bool(spread[-1] < spread[0]))
        found.append(f"{100 * spread[0]:.2f} to {100 * spread[-1]:.2f} on {p.problem.source}")
    return Claim(
        WHERE,
        "The experiments hint at bounds that hold with high probability.",
        f"The standard deviation of PiSTOL's error over shuffles goes, in points, from "
        f"{', '.join(found)} as rows grow. To fall everywhere is a hint, as the paper says, and no "
        "proof: a caveat at best.",
        "holds with a caveat" if all(falls) else "does not hold",
    )


def _features(news: Panel) -> Claim:
    n = news.problem.X.shape[1]
    return Claim(
        "Section 7 and Appendix C",
        f"news20.binary has {NEWS_TEXT:,} features (section 7), or {NEWS_APPENDIX:,} (Appendix C).",
        f"The file has {n:,}. Both numbers cannot be right.",
        "holds with a caveat" if n in (NEWS_TEXT, NEWS_APPENDIX) else "does not hold",
    )


def _no_search(*panels: Panel) -> Claim:
    fits_made = ", ".join(f"{FOLDS * len(p.problem.C) + 1} ({p.problem.source})" for p in panels)
    worst = max(float(p.errors[PISTOL][:, -1].mean()) for p in panels)
    return Claim(
        "Sections 1 and 7",
        "PiSTOL selects its model while training, with no parameters to tune and no cross-validation.",
        f"One fit with the same a, L and b everywhere, against {fits_made} fits of the SVM; with most "
        f"rows the error is at most {100 * worst:.1f} %. A caveat, as a = 0.25, which no theorem "
        "covers, and b = √(2aLT) were the author's choices, and the kernel's γ was fixed beforehand.",
        "holds with a caveat",
    )


def _slope(rows: Sequence[int], e: Array) -> float:
    return float(np.polyfit(np.log(rows), np.log(e), 1)[0])


def _error(values: Array) -> float:
    """Standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _minus(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")
