"""Drafts as people make them, what a reader is meant to see in each, and what follows from it: a judge of the program.

- `judge`: cells, windows and sums → what a reader can work out, by an integer program
- `tables`: what a table counts, the truth behind it, how it was published
- `files`: tables on a sheet, and in a file: XLSX, ODS, CSV, PX, SDMX-CSV
- `corpus`, `offices`, `abroad`, `third`, `fourth`: the drafts; `fifth`: files as they come
- `chance`: drafts drawn at random
- `score`: are they read right, and decided right? (`make drafts`)
- `small`: small tables of which nothing is declared: is anything called proved that is not so?

Except for `score` and `small`, which run the program, nothing here imports it.
"""
