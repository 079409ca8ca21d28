"""Research with unround, as scripts of the repository: `python -m research --help`. The package does not need them.

- `paper`, `searches`: every number of the paper, recomputed; its searches on a simulated census and on any release
- `worlds`: tables with known truth that no prior of unround assumes
- `variability`: how different two worlds of persons can be that fit the same tables
- `calibration`: how often claims are right, by count and stated probability, on such worlds
- `paper_document`, `calibration_document`: what is said of them
- `commands`: `calibrate`, `paper`, `world` and `variability`, as functions; `__main__`: as commands

The paper: C. West, Vecna and R. Chowdhury, Random (Un)rounding, University of Waterloo, 2022.
"""
