"""The report as a page: sections in HTML, a ledger of all claims, where it all comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from pathlib import Path

from .sections import Claim, Picture, Section, Table, Verdict
from .text import duration, marked, numeric

STYLE = Path(__file__).with_name("page.css")
PAPER = "https://arxiv.org/abs/1406.3816"
SIGNS: dict[Verdict, tuple[str, str]] = {
    "holds": ("yes", "✓"),
    "holds with a caveat": ("but", "≈"),
    "does not hold": ("no", "✗"),
}
NOT_JUDGED = (
    "Not judged, being history or opinion: that this is the first algorithm of its kind (sections 1 "
    "and 7), that before it optimal rates needed cross-validation or prior knowledge (1), that a "
    "doubling trick would be of little use (5), that kernels are often chosen so that the best risk is "
    "small (5), that other lower bounds are unlikely (5), and that earlier algorithms adapted each "
    "coordinate to the gradients alone (Appendix A)."
)
REFERENCES = (
    "F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic "
    "learning. Advances in Neural Information Processing Systems 27, 2014.",
    "C.-C. Chang, C.-J. Lin. LIBSVM: a library for support vector machines. ACM Transactions on "
    "Intelligent Systems and Technology 2(3), 2011.",
    "F. Cucker, D.-X. Zhou. Learning Theory: An Approximation Theory Viewpoint. Cambridge University "
    "Press, 2007.",
    "J. Duchi, E. Hazan, Y. Singer. Adaptive subgradient methods for online learning and stochastic "
    "optimization. Journal of Machine Learning Research 12, 2011.",
    "F. Orabona. Dimension-free exponentiated gradient. Advances in Neural Information Processing "
    "Systems 26, 2013.",
    "H. B. McMahan, F. Orabona. Unconstrained online linear learning in Hilbert spaces: minimax "
    "algorithms and normal approximations. Conference on Learning Theory, 2014.",
    "I. Steinwart, D. Hush, C. Scovel. Optimal rates for regularized least squares regression. "
    "Conference on Learning Theory, 2009.",
    "Y. Ying, M. Pontil. Online gradient descent learning algorithms. Foundations of Computational "
    "Mathematics 8(5), 2008.",
    "Y. Ying, D.-X. Zhou. Online regularized classification algorithms. IEEE Transactions on "
    "Information Theory 52(11), 2006.",
    "T. Zhang. Solving large scale linear prediction problems using stochastic gradient descent "
    "algorithms. International Conference on Machine Learning, 2004.",
)


@dataclass(frozen=True)
class About:
    """What a run was: enough to run it again and to know what its figures belong to."""

    title: str
    quick: bool  # whether sizes were reduced
    date: str
    seeds: str
    versions: Mapping[str, str]
    hardware: Mapping[str, str]
    seconds: float
    command: str
    notes: Sequence[str] = ()  # stand-ins, runs that were cut short


def page(sections: Sequence[Section], images: Mapping[str, str], about: About) -> str:
    """The whole page; `images` has an element for each picture's name."""
    numbers = count(1)
    claims = {section.key: [(next(numbers), c) for c in section.claims] for section in sections}
    body = [
        _header(claims, about),
        _contents(sections),
        "<main>",
        _ledger(sections, claims),
        *(_section(section, claims[section.key], images) for section in sections),
        _again(about),
        _references(),
        "</main>",
    ]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(about.title)}</title>",
            '<link rel="icon" href="data:,">',  # or a browser would ask for one
            f"<style>\n{STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>",
            *body,
            "</body>\n</html>\n",
        ]
    )


Numbered = Mapping[str, Sequence[tuple[int, Claim]]]


def _header(claims: Numbered, about: About) -> str:
    """Title, what the page is, and how many claims came out which way."""
    found = [pair for own in claims.values() for pair in own]
    tally = Counter(claim.verdict for _, claim in found)
    size = "reduced size" if about.quick else "full size"
    facts = (about.date, size, f"{duration(about.seconds)} of computing")
    lines = [
        "<header>",
        f"<h1>{escape(about.title)}</h1>",
        f'<p class="facts">{" · ".join(map(escape, facts))}</p>',
    ]
    if about.quick:
        lines.append(
            '<p class="banner"><strong>A quick run.</strong> Everything here was computed at '
            "reduced size, to show that it runs and what the full report looks like. Its figures "
            "and verdicts mean little.</p>"
        )
    lines += [
        f'<p>The paper <a href="{PAPER}">Simultaneous Model Selection and Optimization through '
        "Parameter-free Stochastic Learning</a> (Orabona, 2014) makes claims about an algorithm "
        "called PiSTOL: guarantees on any sequence, optimal rates without tuning, and test errors "
        "close to those of a cross-validated SVM. This page puts "
        f"<strong>{len(found)} of its claims</strong> beside what we computed or measured: "
        f"{_count(tally['holds'], 'holds', 'hold')}, "
        f"{_count(tally['holds with a caveat'], 'holds', 'hold')} with a caveat, and "
        f"{_count(tally['does not hold'], 'does not', 'do not')}.</p>",
        '<ul class="tally" aria-label="Verdicts">',
        *(f"<li>{_verdict(v)} <b>{tally[v]}</b> {_where(v, found)}</li>" for v in SIGNS),
        "</ul>",
        "</header>",
    ]
    return "\n".join(lines)


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def _where(verdict: Verdict, found: Sequence[tuple[int, Claim]]) -> str:
    """Links to the claims that need a second look."""
    if verdict == "holds":
        return ""
    links = (f'<a href="#claim-{n}">{n}</a>' for n, c in found if c.verdict == verdict)
    return f'<span class="which">{" ".join(links)}</span>'


def _contents(sections: Sequence[Section]) -> str:
    entries = [
        ("ledger", "The ledger of claims"),
        *((section.key, section.title) for section in sections),
        ("again", "How to run it again"),
        ("references", "References"),
    ]
    items = "\n".join(f'<li><a href="#{key}">{escape(title)}</a></li>' for key, title in entries)
    head = '<nav aria-labelledby="contents">\n<h2 id="contents">Contents</h2>'
    return f"{head}\n<ol>\n{items}\n</ol>\n</nav>"


def _ledger(sections: Sequence[Section], claims: Numbered) -> str:
    """All claims of all sections, each with its verdict."""
    lines = [
        '<section id="ledger">\n<h2>The ledger of claims</h2>',
        "<p>What the paper says, in our words, beside what we computed or measured. Verdicts follow "
        "from the numbers by rules that stand beside them; their limits are ours, and some were set "
        "when first results had been seen. A caveat that lies in a claim itself and not in a number "
        "is said in words. A number leads to the section that settles the claim.</p>",
        '<table class="ledger" role="table">',
        '<thead role="rowgroup"><tr role="row">',
        *(f'<th scope="col" role="columnheader">{h}</th>' for h in
          ("No.", "The paper claims", "We found", "Verdict")),
        "</tr></thead>",
    ]  # fmt: skip
    for section in (s for s in sections if claims[s.key]):
        lines.append(
            '<tbody role="rowgroup"><tr role="row" class="of"><th colspan="4" scope="rowgroup" '
            f'role="rowheader"><a href="#{section.key}">{escape(section.title)}</a></th></tr>'
        )
        lines += [_claim(n, claim, section.key) for n, claim in claims[section.key]]
        lines.append("</tbody>")
    return "\n".join([*lines, f"</table>\n<p>{NOT_JUDGED}</p>\n</section>"])


def _claim(n: int, claim: Claim, key: str) -> str:
    return (
        f'<tr role="row" id="claim-{n}">'
        f'<th scope="row" role="rowheader"><a href="#{key}" aria-label="Claim {n}: its section">'
        f"{n}</a></th>"
        f'<td role="cell"><span class="where">{marked(claim.where)}</span> {marked(claim.claim)}</td>'
        f'<td role="cell">{marked(claim.measured)}</td>'
        f'<td role="cell">{_verdict(claim.verdict)}</td></tr>'
    )


def _verdict(verdict: Verdict) -> str:
    kind, sign = SIGNS[verdict]
    return f'<span class="verdict {kind}"><span aria-hidden="true">{sign}</span> {verdict}</span>'


def _section(
    section: Section, claims: Sequence[tuple[int, Claim]], images: Mapping[str, str]
) -> str:
    lines = [f'<section id="{section.key}">', f"<h2>{escape(section.title)}</h2>"]
    if claims:
        first, last = claims[0][0], claims[-1][0]
        which = f"claim {first}" if first == last else f"claims {first} to {last}"
        lines.append(f'<p class="settles">Settles <a href="#claim-{first}">{which}</a>.</p>')
    for part in section.parts:
        if isinstance(part, Picture):
            lines.append(
                f'<figure id="picture-{part.name}">\n<div class="card">{images[part.name]}</div>\n'
                f"<figcaption><strong>{marked(part.title)}.</strong> {marked(part.caption)}"
                "</figcaption>\n</figure>"
            )
        else:
            lines.append(_table(part) if isinstance(part, Table) else f"<p>{marked(part)}</p>")
    return "\n".join([*lines, "</section>"])


def _table(table: Table) -> str:
    """A table whose columns of numbers stand flush right; a wide one scrolls by itself."""
    right = [numeric(column) for column in zip(*table.rows, strict=True)] or [False] * len(
        table.head
    )
    kinds = [' class="n"' if r else "" for r in right]
    head = "".join(f'<th scope="col"{k}>{marked(h)}</th>' for k, h in zip(kinds, table.head))
    rows = [
        f'<tr><th scope="row"{kinds[0]}>{marked(first)}</th>'
        + "".join(f"<td{k}>{marked(cell)}</td>" for k, cell in zip(kinds[1:], rest))
        + "</tr>"
        for first, *rest in table.rows
    ]
    title = escape(table.title, quote=True)
    return "\n".join(
        [
            '<figure class="table">',
            f"<figcaption><strong>{marked(table.title)}.</strong> {marked(table.caption)}</figcaption>",
            f'<div class="scroll" role="region" aria-label="{title}" tabindex="0">',
            f'<table aria-label="{title}">\n<thead><tr>{head}</tr></thead>\n<tbody>',
            *rows,
            "</tbody>\n</table>\n</div>\n</figure>",
        ]
    )


def _again(about: About) -> str:
    """The command, the machine, the versions, the seeds."""
    rows = [
        ("Command", f"<code>{escape(about.command)}</code>"),
        ("Date", escape(about.date)),
        ("Time taken", duration(about.seconds)),
        ("Seeds", marked(about.seeds)),
        ("Versions", ", ".join(f"{escape(k)}&nbsp;{escape(v)}" for k, v in about.versions.items())),
        *((escape(k), escape(v)) for k, v in about.hardware.items()),
    ]
    facts = "\n".join(f"<dt>{k}</dt><dd>{v}</dd>" for k, v in rows)
    notes = "\n".join(f"<li>{marked(note)}</li>" for note in about.notes)
    return "\n".join(
        [
            '<section id="again">\n<h2>How to run it again</h2>',
            "<p><code>pistol reproduce</code> computes everything on this page, the figures and the "
            "verdicts included. Whatever is finished is kept and not computed twice, so an "
            "interrupted run goes on where it was. <code>pistol reproduce --quick</code> does it at "
            "reduced size in a few minutes.</p>",
            f'<dl class="run">\n{facts}\n</dl>',
            f"<h3>Notes</h3>\n<ul>\n{notes}\n</ul>" if notes else "",
            "</section>",
        ]
    )


def _references() -> str:
    items = [f"<li>{escape(reference)}</li>" for reference in REFERENCES]
    items[0] = items[0].replace("</li>", f' <a href="{PAPER}">arXiv:1406.3816</a></li>')
    return "\n".join(
        ['<section id="references">\n<h2>References</h2>\n<ul>', *items, "</ul>\n</section>"]
    )
