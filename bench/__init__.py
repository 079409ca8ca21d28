"""Benchmarks: speed as ratios against baselines in the same run. `make bench` runs them all."""
