"""How an estimator is trained."""
