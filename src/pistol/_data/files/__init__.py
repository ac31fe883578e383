"""Data files: chunks of rows, targets and weights in bounded memory."""
