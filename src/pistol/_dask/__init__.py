"""Learning on a Dask cluster: what workers do, and how it is asked of them."""
