"""How a true count becomes a published one: one file per family, behind the protocol `Mechanism`.

- `rounding`: Rounding, unbiased random rounding to a base; Residues, the same by any table of
  probabilities; Graduated and Sample, with a base that depends on the count
- `conventional`: Nearest and Digits, deterministic rounding
- `plain`: Exact, Within, Unpublished, Suppressed
- `noise`: Laplace and Gaussian, unbounded noise; `sampling` draws it exactly
- `transition`: Transition, a table of transition probabilities (cell key)
- `keyed`: the law of random numbers that add up as counts do; `weighted`: Weighted, rounding of estimates
- `spec`: mechanism, from text such as "rounding:5"
"""

from unround.mechanisms.base import HIDDEN, TAIL, Mechanism, Window
from unround.mechanisms.conventional import Digits, Nearest
from unround.mechanisms.noise import Gaussian, Laplace
from unround.mechanisms.plain import Exact, Suppressed, Unpublished, Within
from unround.mechanisms.rounding import Graduated, Residues, Rounding, Sample
from unround.mechanisms.spec import mechanism
from unround.mechanisms.transition import Transition
from unround.mechanisms.weighted import Weighted

__all__ = [
    "HIDDEN",
    "TAIL",
    "Digits",
    "Exact",
    "Gaussian",
    "Graduated",
    "Laplace",
    "Mechanism",
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
