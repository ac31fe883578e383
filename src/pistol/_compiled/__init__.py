"""Everything that numba compiles, and what it needs: types, plugs, rows, loops, tiles, threads."""
