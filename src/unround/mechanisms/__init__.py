"""How a true count becomes a published one: one file a family, behind the protocol `Mechanism`.

- `rounding`: Rounding, random rounding to a base, unbiased
- `graduated`: Graduated and Sample, the same with a base that depends on the count
- `residues`: Residues, random rounding by any table of probabilities
- `conventional`: Nearest and Digits, rounding without chance
- `plain`: Exact, Within, Unpublished, Suppressed
- `noise`: Laplace and Gaussian, noise without bounds
- `transition`: Transition, a table of transition probabilities (cell key)
- `spec`: mechanism, from text such as "rounding:5"
"""

from unround.mechanisms.base import HIDDEN, TAIL, Mechanism, Window
from unround.mechanisms.conventional import Digits, Nearest
from unround.mechanisms.graduated import Graduated, Sample
from unround.mechanisms.noise import Gaussian, Laplace
from unround.mechanisms.plain import Exact, Suppressed, Unpublished, Within
from unround.mechanisms.residues import Residues
from unround.mechanisms.rounding import Rounding
from unround.mechanisms.spec import mechanism
from unround.mechanisms.transition import Transition

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
    "Window",
    "Within",
    "mechanism",
]
