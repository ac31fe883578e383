"""From what users hand in to numbers that learners take: checks, scaling, order, sums of kernels."""
