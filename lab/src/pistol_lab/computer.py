"""What a figure belongs to: the processor, and the versions of what was used."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

PACKAGES = (
    "pistol", "numpy", "scipy", "scikit-learn", "numba",
    "vowpalwabbit", "river", "lightgbm", "catboost", "xgboost",
)  # fmt: skip


def computer() -> dict[str, Any]:
    """Processor, cores, BLAS and versions: what a figure belongs to."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    blas = {
        f"{b['internal_api']} {b['version']}" for b in threadpool_info() if b["user_api"] == "blas"
    }
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "blas": ", ".join(sorted(blas)),
        "versions": versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
