"""Laws of the report: one file that asks for nothing, every claim in it, the same bytes each time."""

import re
import struct
from collections import Counter
from html import escape
from html.parser import HTMLParser
from itertools import pairwise
from unicodedata import category

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from pistol_lab.reproduction import report
from pistol_lab.reproduction.page import SIGNS, About, page
from pistol_lab.reproduction.sections import Claim, Picture, Section, Table
from pistol_lab.reproduction.text import duration, marked, numeric

VOID = {"meta", "link", "img", "path", "use", "br"}


class Outline(HTMLParser):
    """Tags, ids, links and words of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.links, self.sources, self.open = [], [], [], [], []
        self.words = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        self.ids += [values["id"]] if "id" in values else []
        for name in ("href", "xlink:href"):
            self.links += [values[name]] if name in values else []
        self.sources += [values["src"]] if "src" in values else []

    def handle_data(self, data):
        self.words += data


def drawing(seed=0, points=20):
    figure = Figure(figsize=(4.0, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.plot(np.random.default_rng(seed).normal(size=points), "o-", label="α & <β>")
    axes.legend()
    return figure


def picture(name, seed=0, **more):
    return Picture(name, "A title", "A caption", drawing(seed, **more), 'what is "seen" & <known>')


def sections():
    claims = [
        Claim("Section 1", "It is <fast> & good.", "7 times", "holds"),
        Claim("Section 4", "It is simple.", "3 lines", "holds with a caveat"),
    ]
    table = Table("Times", "in seconds", ("data", "rows", "note"), [("a9a", "32,561", "well")])
    return [
        Section("first", "First things", ["A **bold** `word`.", picture("one"), table], claims),
        Section("second", "Second <things>", [picture("two")], [
            Claim("Section 7", "It is exact.", "0.5 off", "does not hold")]),
        Section("third", "No claims", ["Nothing."]),
    ]  # fmt: skip


def about(quick=False):
    return About(
        "A <title>", quick, "2026-01-01", "0 to 4", {"pistol": "1.0"}, {"Cores": "2"}, 3_700.0,
        "pistol reproduce --out x", ("One <note>.",),
    )  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    return report.write(sections(), out, about())


@pytest.fixture(scope="module")
def text(written):
    return written.read_text(encoding="utf-8")


def test_the_page_asks_for_nothing_from_anywhere(text):
    outline = Outline(text)
    assert "script" not in outline.tags
    assert all(source.startswith("data:") for source in outline.sources)
    assert all(url.startswith("#") for url in re.findall(r"url\(([^)]*)\)", text))
    assert "@import" not in text
    assert {link.split(":")[0] for link in outline.links if link[0] != "#"} == {"https", "data"}


def test_ids_are_unique_and_every_link_inside_the_page_arrives(text):
    outline = Outline(text)
    assert len(outline.ids) == len(set(outline.ids))
    inside = {link[1:] for link in outline.links if link.startswith("#")}
    inside |= set(re.findall(r"url\(#([^)]*)\)", text))
    assert inside
    assert inside <= set(outline.ids)


def test_tags_are_nested_and_closed(text):
    stack = []
    for closing, tag, alone in re.findall(
        r"<(/?)([a-z][a-z0-9:]*)[^>]*?(/?)>", _without_style(text)
    ):
        if closing:
            assert stack.pop() == tag
        elif not alone and tag not in VOID:
            stack.append(tag)
    assert not stack


def _without_style(text):
    return re.sub(r"<style>.*?</style>|<!doctype html>", "", text, flags=re.DOTALL)


def test_headings_descend_one_level_at_a_time(text):
    levels = [int(tag[1]) for tag in Outline(text).tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_the_ledger_has_every_claim_with_its_verdict_and_its_section(text):
    claims = [(c, s.key) for s in sections() for c in s.claims]
    for n, (claim, key) in enumerate(claims, 1):
        row = re.search(rf'<tr role="row" id="claim-{n}">.*?</tr>', text)[0]
        kind, sign = SIGNS[claim.verdict]
        assert f'href="#{key}"' in row
        assert f'class="verdict {kind}"' in row
        assert sign in row
        words = Outline(row).words
        assert all(
            part in words for part in (claim.where, claim.claim, claim.measured, claim.verdict)
        )


@given(st.lists(st.sampled_from(sorted(SIGNS)), max_size=8))
def test_the_summary_counts_the_verdicts(verdicts):
    claims = [Claim("here", "this", "1", verdict) for verdict in verdicts]
    words = Outline(_without_style(page([Section("s", "S", [], claims)], {}, about()))).words
    tally = Counter(verdicts)
    assert f"{len(verdicts)} of its claims" in words
    for verdict in SIGNS:
        assert re.search(rf"{verdict}\s*{tally[verdict]}\b", words)


def test_a_quick_report_says_so_and_a_full_one_does_not(text):
    assert 'class="banner"' not in text
    assert 'class="banner"' in page([], {}, about(quick=True))


def test_all_words_of_the_run_are_on_the_page(text):
    words = Outline(_without_style(text)).words
    for word in ("A <title>", "2026-01-01", "0 to 4", "pistol reproduce --out x", "One <note>.",
                 "1 h 1 min", "Second <things>", "in seconds"):  # fmt: skip
        assert word in words


def test_each_figure_is_a_png_of_twice_the_resolution_and_an_svg(written):
    for name in ("one", "two"):
        png = (written.parent / "figures" / f"{name}.png").read_bytes()
        svg = (written.parent / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert struct.unpack(">I", png[16:20])[0] == pytest.approx(
            2 * report._width(svg.encode()), abs=4
        )
        assert "<dc:date>" not in svg


def test_the_same_report_has_the_same_bytes(written, tmp_path):
    again = report.write(sections(), tmp_path, about())
    assert again.read_bytes() == written.read_bytes()
    for path in (written.parent / "figures").iterdir():
        assert (tmp_path / "figures" / path.name).read_bytes() == path.read_bytes()


def test_pictures_are_seen_by_those_who_do_not_see(text):
    alt = escape('what is "seen" & <known>', quote=True)
    assert text.count(f'role="img" aria-label="{alt}"') == 2


def test_a_large_picture_is_held_as_png(monkeypatch):
    small = picture("small")
    svg, png = report.drawn(small)
    assert report.inline(small, svg, png).startswith("<svg")
    monkeypatch.setattr(report, "LARGE", len(svg) - 1)
    image = report.inline(small, svg, png)
    assert image.startswith("<img")
    assert 'src="data:image/png;base64,' in image
    assert 'alt="what is &quot;seen&quot;' in image


def test_two_pictures_of_one_name_are_refused(tmp_path):
    twice = [Section("s", "S", [picture("one"), picture("one", 1)])]
    with pytest.raises(ValueError, match="two pictures are named 'one'"):
        report.write(twice, tmp_path, about())


ANY = st.integers(0, 0x10FFFF).map(chr).filter(lambda letter: category(letter) != "Cs")
MARKS = st.sampled_from("*`^_<>&;()\"' ab")


def is_plain(letter):
    return letter not in "*`^_" and category(letter) != "Cc"


@given(st.lists(MARKS | ANY).map("".join))
def test_no_text_becomes_a_tag_of_its_own(words):
    assert set(Outline(marked(words)).tags) <= {"strong", "code", "sup", "sub"}


@given(st.lists((MARKS | ANY).filter(is_plain)).map("".join))
def test_plain_text_is_kept_to_the_letter(words):
    assert Outline(marked(words)).words == words


@pytest.mark.parametrize(
    ("plain", "html"),
    [
        ("a **b** c", "a <strong>b</strong> c"),
        ("`x_t^2 **no**`", "<code>x_t^2 **no**</code>"),
        ("T^(−2β/((2β+1)(2−α)))", "T<sup>−2β/((2β+1)(2−α))</sup>"),
        ("T^0.5, 10^−3, T^(-β)", "T<sup>0.5</sup>, 10<sup>−3</sup>, T<sup>−β</sup>"),
        ("L_K^β, s_t², g_(t−1)", "L<sub>K</sub><sup>β</sup>, s<sub>t</sub>², g<sub>t−1</sub>"),
        ("wisdm_fft, snake_case_x, n_jobs", "wisdm_fft, snake_case_x, n_jobs"),
        ("<b> & 'c'", "&lt;b&gt; &amp; 'c'"),
    ],
)
def test_markup(plain, html):
    assert marked(plain) == html


@pytest.mark.parametrize(
    ("column", "is_numeric"),
    [
        (["32,561", "1.5"], True),
        (["14.9 ± 0.1 %", "–"], True),
        (["6.5 h", "12 s", ""], True),
        (["−0.667", "7.1×", "≈ 3", "1.2·10⁻³", "3e-05"], True),
        (["**12**"], True),
        (["2 of 3"], False),
        (["–", ""], False),
        (["12", "a9a"], False),
        ([], False),
    ],
)
def test_columns_of_numbers_are_known(column, is_numeric):
    assert numeric(column) == is_numeric


def test_columns_of_numbers_stand_flush_right(text):
    assert '<th scope="col" class="n">rows</th>' in text
    assert '<td class="n">32,561</td><td>well</td>' in text


@given(st.integers(0, 10**6))
def test_a_duration_is_read_back(seconds):
    units = {"h": 3600, "min": 60, "s": 1}
    parts = re.findall(r"(\d+) (h|min|s)", duration(seconds))
    total = sum(int(n) * units[u] for n, u in parts)
    assert total <= seconds < total + units[parts[-1][1]]


def test_a_run_knows_its_versions_and_its_machine():
    run = report.about(True, 1.0, "pistol reproduce --quick", "0", ["A note."])
    assert set(run.versions) == set(report.VERSIONS)
    assert {"Processor", "Cores", "System"} <= set(run.hardware)
    assert run.quick
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", run.date)
