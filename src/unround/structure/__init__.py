"""The structure of a release: which counts add up to which, which are the same, and how each was published.

- `survey`: START HERE. `find_structure`, and `Survey` for those who go through the blocks themselves
- `mechanism`: how counts were published, told from what divides them
- `verify`: whether a sum holds, by its residuals
- `propose`, `repeats`: sums and repeated counts that nobody proposed, looked for in the counts
- `geography`: whether areas add up to the areas that they lie in; `nesting` (with `routes`, `families`): which make up which
- `plan_file`, `apply`: what was found as a TOML file that a person can edit, and the person's word applied
- `types`: what comes out
"""

from unround.structure.nesting import Level, Nesting, find_nesting
from unround.structure.plan_file import read_plan, write_plan
from unround.structure.survey import LOOK, Survey, find_structure
from unround.structure.types import Checked, GeographyVerdict, PlanFile, PlannedSum, Repeat, Structure, SumEvidence

__all__ = [
    "LOOK",
    "Checked",
    "GeographyVerdict",
    "Level",
    "Nesting",
    "PlanFile",
    "PlannedSum",
    "Repeat",
    "Structure",
    "SumEvidence",
    "Survey",
    "find_nesting",
    "find_structure",
    "read_plan",
    "write_plan",
]
