"""From a draft table to a decision: publish, revise or stop. Start in `run`.

- `run`: the whole review, from a table to a folder
- `policy`: what may be published; `wording`: limits and reasons as sentences
- `table`: a draft, or what a repair makes of it; `exposure`: what readers can learn from it, at the highest probability
- `decision`: a table held against a policy
- `repairs`, `merging`: changes to a table; `worlds`: the true counts that they are published from; `trying`: all of them
- `cells`: the cells to act on, and one as an example
- `exceptions`: what a reviewer accepts, and why; `workbook`: `cells.xlsx`, where that can be written
"""

from unround.reviews.policy import Policy as Policy
from unround.reviews.policy import policy_of as policy_of
from unround.reviews.run import Review as Review
from unround.reviews.run import review as review
