"""A process that is killed at any moment loses nothing that a checkpoint has."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
from typer.testing import CliRunner

from pistol.cli import app

KILLS = int(os.environ.get("PISTOL_KILLS", "2"))


def command(*words):
    """For a process that can be killed."""
    return [sys.executable, "-m", "pistol", "train", *map(str, words)]


def train(*words):
    """In this process, which need not be started."""
    done = CliRunner().invoke(app, ["train", *map(str, words)])
    assert done.exit_code == 0, done.output


def test_a_killed_run_ends_with_the_same_bytes(tmp_path):
    """Several files and passes; a checkpoint after every chunk; killed again and again."""
    rng = np.random.default_rng(0)
    for number in (1, 2):
        X = np.round(rng.normal(size=(2500, 5)), 3)
        lines = (
            f"{int(row[0] > row[1])} " + " ".join(f"{i + 1}:{x}" for i, x in enumerate(row)) + "\n"
            for row in X
        )
        (tmp_path / f"part-{number}.svm").write_text("".join(lines))
    options = ["--stream", "--passes", 3, "--chunk-bytes", 8000, "--checkpoint", "0s"]
    words = [tmp_path / "part-*.svm", *options]
    whole, out = tmp_path / "whole.pistol", tmp_path / "m.pistol"
    start = time.monotonic()
    train(*words, "-o", whole)
    took = time.monotonic() - start

    clock, kills, checkpoint = random.Random(0), 0, tmp_path / "m.pistol.checkpoint"
    while kills < KILLS:
        process = subprocess.Popen(
            command(*words, "-o", out, "--resume"),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        deadline = time.monotonic() + 60 + 10 * took
        while process.poll() is None and time.monotonic() < deadline:  # until it has got further
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns > before:
                break
            time.sleep(0.01)
        time.sleep(clock.random() * 0.1 * took / KILLS)
        if process.poll() is not None:
            assert process.returncode == 0
            out.unlink()  # it was done before it could be killed: begin anew
            continue
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
    train(*words, "-o", out, "--resume")
    assert out.read_bytes() == whole.read_bytes()
    assert not checkpoint.exists()
