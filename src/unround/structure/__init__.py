"""The structure of a release: which counts add up to which, which are the same, and how each was published.

- `survey`: START HERE. `find_structure`, and `Survey`, which takes in one block of areas after another
- `mechanism`: how counts were published, inferred from what divides them; `noise`: from sums that miss by a few
- `residuals`: total minus parts, over all areas, and how far mechanisms let them scatter
- `verify`: whether a sum holds, by its residuals, or like its neighbours where it is too small to judge
- `propose`: sums and repeated counts that nobody proposed, searched for in the counts
- `balances`: columns that balance others though no total of either is printed
- `nesting`: which areas make up which, and whether they add up
- `figure_verdicts`: figures held against counts, and what published rates, means and medians tell
- `decisions`: what the user decides, in place of the verdicts of the counts
- `evidence`: what comes out
"""

from unround.structure.decisions import declaring as declaring
from unround.structure.decisions import declaring_exact as declaring_exact
from unround.structure.evidence import FigureVerdict as FigureVerdict
from unround.structure.evidence import FoundNoise as FoundNoise
from unround.structure.evidence import JudgedFigure as JudgedFigure
from unround.structure.evidence import JudgedSum as JudgedSum
from unround.structure.evidence import MechanismEvidence as MechanismEvidence
from unround.structure.evidence import Repeat as Repeat
from unround.structure.evidence import Structure as Structure
from unround.structure.nesting import Nesting as Nesting
from unround.structure.nesting import NestingLevel as NestingLevel
from unround.structure.nesting import find_nesting as find_nesting
from unround.structure.survey import LOOK as LOOK
from unround.structure.survey import Survey as Survey
from unround.structure.survey import find_structure as find_structure
