"""Checkpoints: the model so far, and how far that is, in one file that is replaced in one step."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any

from .._estimators.files import read_model, write_model
from .._estimators.loading import estimator_of

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float | None:
    """`60s`, `5m` or `1h` in seconds; None for `off`."""
    if text == "off":
        return None
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        value = float(number) * UNITS[unit]
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise ValueError(f"--checkpoint takes a time such as 60s, 5m or 1h, or off; got {text!r}")
    return value


class Checkpoints:
    """Where and how often a model in training is saved."""

    def __init__(self, model: Path, every: float | None, job: dict[str, Any]) -> None:
        self.path, self.every, self.job = model.with_name(model.name + ".checkpoint"), every, job
        self.last = monotonic()

    def resume(self) -> tuple[Any, dict[str, Any]] | None:
        """The model of an interrupted run, and its notes; None where there is none."""
        if not self.path.exists():
            return None
        saved = read_model(self.path)
        notes = saved.header["notes"]
        before = notes.get("job")
        if before != self.job:
            same = isinstance(before, dict) and before.keys() == self.job.keys()
            changed = [name for name in self.job if before[name] != self.job[name]] if same else []
            raise ValueError(
                f"{self.path} is of another run"
                + (f": {', '.join(changed)} differ" if changed else "")
                + "; run the same command on the same files, or begin anew without --resume"
            )
        return estimator_of(saved, self.path), notes

    def due(self) -> bool:
        """Whether it is time to save."""
        return self.every is not None and monotonic() - self.last >= self.every

    def save(self, model: Any, notes: dict[str, Any]) -> None:
        """Save the model; a crash on the way leaves the checkpoint before."""
        write_model(self.path, model, model.fitted_, notes={"job": self.job, **notes})
        self.last = monotonic()

    def done(self) -> None:
        """The run has ended; nothing is left to resume."""
        self.path.unlink(missing_ok=True)
