"""How a true count becomes a published one: one file per family, behind the protocol `Mechanism`.

- `rounding`: Rounding, unbiased random rounding to a base; Residues, the same by any table of
  probabilities; Graduated and Sample, with a base that depends on the count
- `conventional`: Nearest, Midpoint and Digits, deterministic rounding
- `plain`: Exact, Within, Unpublished, Suppressed; `bands`: Bands, ranges of counts that become one count, or one of
  two; Cutoff, small counts that become 0
- `noise`: Laplace and Gaussian, unbounded noise; `sampling` draws it exactly
- `transition`: Transition, a table of transition probabilities (cell key); `cellkey`: CellKey, one by its parameters
- `keyed`: the law of random numbers that add up as counts do; `weighted`: Weighted, rounding of estimates
- `spec`: mechanism, from text such as "rounding:5"
"""

from unround.mechanisms.bands import Bands, Cutoff
from unround.mechanisms.base import HIDDEN, TAIL, Mechanism, Window
from unround.mechanisms.cellkey import CellKey
from unround.mechanisms.conventional import Digits, Midpoint, Nearest
from unround.mechanisms.noise import Gaussian, Laplace
from unround.mechanisms.plain import Exact, Suppressed, Unpublished, Within
from unround.mechanisms.rounding import Graduated, Residues, Rounding, Sample
from unround.mechanisms.spec import mechanism
from unround.mechanisms.transition import Transition
from unround.mechanisms.weighted import Weighted

__all__ = [
    "HIDDEN",
    "TAIL",
    "Bands",
    "CellKey",
    "Cutoff",
    "Digits",
    "Exact",
    "Gaussian",
    "Graduated",
    "Laplace",
    "Mechanism",
    "Midpoint",
    "Nearest",
    "Residues",
    "Rounding",
    "Sample",
    "Suppressed",
    "Transition",
    "Unpublished",
    "Weighted",
    "Window",
    "Within",
    "mechanism",
]
