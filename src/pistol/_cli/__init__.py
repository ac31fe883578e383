"""The commands about files: train, predict, evaluate, inspect, convert."""
