"""The lab of pistol: `pistol bench` compares speed and errors, `pistol reproduce` checks the paper.

A distribution of its own, `pistol-lab`. The library never imports it; an entry point adds its
commands to `pistol`.
"""

__version__ = "0.1.0"
