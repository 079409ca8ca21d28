"""Counting what an audit found: how much, where, next to chance and to the truth.

- `summary`: the tally of a release, and what keeps an audit from calling it safe
- `chance`: how often single sums would give counts away by chance
- `truth`: claims held against true counts, where these are known
"""
