"""The structure of a release: which counts add up to which, which are the same, and how each was published.

- `survey`: START HERE. `find_structure`, and `Survey`, which takes in one block of areas after another
- `mechanism`: how counts were published, inferred from what divides them
- `perturbation`: counts that look exact, but whose sums miss by a few: noise, and which kind fits
- `scatter`: how far published counts are from true ones; `residuals`: total minus parts, over all areas;
  `adding`: the sums of many columns at once
- `verify`: whether a sum holds, by its residuals; `leaning`: small counts that lean told from parts that are missing;
  `analogy`: sums too small to judge, judged like their neighbours
- `propose`, `repeats`: sums and repeated counts that nobody proposed, searched for in the counts
- `area_sums`: whether areas add up to their parents; `nesting` (with `family_fit`): which areas make up which
- `figure_verdicts`: what published rates, means and medians tell; `figure_data`, `figure_tests`: figures held against
  counts; `figure_grids`: the steps that they were rounded to
- `plan_file`: the findings as a TOML file to edit, and the edited decisions applied; `planned_figures`: those on figures
- `evidence`: what comes out
"""

from unround.structure.evidence import (
    FigureVerdict,
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
