"""Audit a whole release: every count that can be worked out of it, written into a folder. Start in `run`.

- `run`: the whole audit, from a file to a folder; `options` are what the user decides
- `model`: what all areas share; `nested`, `keys`: which areas are nested, which random numbers add up
- `block`: one block of areas, in five steps: `bounds`, `contradictions`, `probabilities`, `claims`, together in `inferred`
- `figures`, `figure_probabilities`: what published rates, means and medians leave possible, and make likely
- `certificates`, `findings`: claims with their proofs, and as rows of a table; `estimates` of all counts
- `suspects`, `holding`: data that are possible but absurd, and which claims are held back
- `ranking`: which findings matter most
- `summary`, `chance`, `truth`, `scoring`: what is counted, next to chance and to the truth
- `work`, `cluster`, `merge`: how a large audit is cut into blocks, worked on, and put together again
- `folder`: the finished audit, and how areas and counts are found in it
- `integrity`: whether its files are as the audit left them; `verification`: whether its certificates prove what it says
"""

from unround.audits.block import Auditor as Auditor
from unround.audits.findings import Finding as Finding
from unround.audits.folder import AuditFolder as AuditFolder
from unround.audits.inferred import InferredBlock as InferredBlock
from unround.audits.model import Model as Model
from unround.audits.run import AuditOptions as AuditOptions
from unround.audits.run import audit as audit
from unround.audits.run import survey as survey
