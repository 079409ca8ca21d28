"""The structure of a release: which counts add up to which, which are the same, and how each was published.

- `survey`: START HERE. `find_structure`, and `Survey`, which takes in one block of areas after another
- `mechanism`: how counts were published, inferred from what divides them; `noise`: from sums that miss by a few
- `residuals`: total minus parts, over all areas, and how far mechanisms let them scatter
- `verify`: whether a sum holds, by its residuals, or like its neighbours where it is too small to judge
- `propose`: sums and repeated counts that nobody proposed, searched for in the counts
- `balances`: columns that balance others though no total of either is printed
- `families`: whether areas add up to their parents; `nesting`: which areas make up which
- `figure_verdicts`: what published rates, means and medians tell; `figure_tests`: figures held against counts
- `plan_file`: the findings as a TOML file to edit, and the edited decisions applied
- `evidence`: what comes out
"""

from unround.structure.evidence import (
    FigureVerdict,
    FoundNoise,
    GeographyVerdict,
    JudgedFigure,
    JudgedSum,
    MechanismEvidence,
    PlanFile,
    PlannedFigure,
    PlannedSum,
    Repeat,
    Structure,
)
from unround.structure.nesting import Nesting, NestingLevel, find_nesting
from unround.structure.plan_file import declaring, declaring_exact, read_plan, write_plan
from unround.structure.survey import LOOK, Survey, find_structure

__all__ = [
    "LOOK",
    "FigureVerdict",
    "FoundNoise",
    "GeographyVerdict",
    "JudgedFigure",
    "JudgedSum",
    "MechanismEvidence",
    "Nesting",
    "NestingLevel",
    "PlanFile",
    "PlannedFigure",
    "PlannedSum",
    "Repeat",
    "Structure",
    "Survey",
    "declaring",
    "declaring_exact",
    "find_nesting",
    "find_structure",
    "read_plan",
    "write_plan",
]
