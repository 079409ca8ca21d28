"""How a true count becomes a published one: one file per family, behind the protocol `Mechanism`.

- `rounding`: Rounding, unbiased random rounding to a base; Residues, the same by any table of
  probabilities; Graduated and Sample, with a base that depends on the count; Weighted, of estimates
- `plain`: Exact; Nearest, Midpoint and Digits, deterministic rounding; Within, Unpublished
- `bands`: Suppressed, a range of counts that is hidden; Bands, ranges that become one count, or one of two; Cutoff, small
  counts that become 0
- `noise`: Laplace and Gaussian, unbounded noise; `sampling` draws it exactly
- `transition`: Transition, a table of transition probabilities (cell key); `cellkey`: CellKey, one by its parameters
- `keyed`: the law of random numbers that add up as counts do
- `spec`: mechanism, from text such as "rounding:5"
"""

from unround.mechanisms.bands import Bands as Bands
from unround.mechanisms.bands import Cutoff as Cutoff
from unround.mechanisms.bands import Suppressed as Suppressed
from unround.mechanisms.base import HIDDEN as HIDDEN
from unround.mechanisms.base import TAIL as TAIL
from unround.mechanisms.base import Mechanism as Mechanism
from unround.mechanisms.base import Window as Window
from unround.mechanisms.cellkey import CellKey as CellKey
from unround.mechanisms.noise import Gaussian as Gaussian
from unround.mechanisms.noise import Laplace as Laplace
from unround.mechanisms.plain import Digits as Digits
from unround.mechanisms.plain import Exact as Exact
from unround.mechanisms.plain import Midpoint as Midpoint
from unround.mechanisms.plain import Nearest as Nearest
from unround.mechanisms.plain import Unpublished as Unpublished
from unround.mechanisms.plain import Within as Within
from unround.mechanisms.rounding import Graduated as Graduated
from unround.mechanisms.rounding import Residues as Residues
from unround.mechanisms.rounding import Rounding as Rounding
from unround.mechanisms.rounding import Sample as Sample
from unround.mechanisms.rounding import Weighted as Weighted
from unround.mechanisms.spec import mechanism as mechanism
from unround.mechanisms.transition import Transition as Transition
