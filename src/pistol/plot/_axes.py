"""Where pictures are drawn, and their colours."""

from __future__ import annotations

from typing import Any

PISTOL, THEORY = "#1b6ca8", "#555555"
AGAINST = "#c8553d"  # contributions that make a prediction smaller
LONG = 28  # letters of a label; more are cut


def axes(width: float = 6.4, height: float = 4.8) -> Any:
    """The axes of a new figure of this size, in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError(
            "pictures need matplotlib, which comes with an extra: pip install 'pistol[cli]'"
        ) from missing
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def short(label: Any) -> str:
    """A label that is not too long, and in which nothing is a formula."""
    text = str(label)
    text = text if len(text) <= LONG else f"{text[: LONG - 1]}…"
    return text.replace("$", r"\$")


def bars(ax: Any, labels: list[str], values: Any, colors: Any = PISTOL) -> Any:
    """Horizontal bars with labels, from the top down."""
    drawn = ax.barh(range(len(labels)), values, color=colors, height=0.7)
    ax.set_yticks(range(len(labels)), labels)
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
    return drawn


def bars_axes(n: int) -> Any:
    """The axes of a new figure for so many horizontal bars."""
    return axes(height=1.0 + 0.32 * max(n, 2))
