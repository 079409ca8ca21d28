"""One block of areas, from what was published to what can be claimed. Start in `block`.

- `model`: what all areas share; `keys`: which random numbers add up
- `bounds`: what is possible, within areas and between nested ones, and what contradicts; `figures`: by published rates,
  means and medians
- `weigh`: what is likely, under every prior of the set
- `claims`: what can be claimed from both; `certificates`: claims with their proofs; `findings`: as rows of a table, those
  that matter most first
- `suspects`: data that are possible but absurd, and which claims are held back; `selfcheck`: how well priors predict what
  was published
- `block`: the block as a whole, and estimates of all its counts
"""

from unround.audits.block import Auditor as Auditor
from unround.audits.certificates import InferredBlock as InferredBlock
from unround.audits.findings import Finding as Finding
from unround.audits.model import Model as Model
