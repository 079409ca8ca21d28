"""From a draft table to a decision: publish, revise, stop or undecided. Start in `run`.

- `run`: the whole review, from a table to a folder
- `policy`: what may be published, and its rules as sentences
- `table`: a draft, or what a repair makes of it; `exposure`: what readers can learn from it, at the highest probability
- `decision`: a table held against a policy, and what is not settled
- `questions`: what a table would tell if something held that nobody says
- `layout`: a repaired table written back as it came
- `together`: several tables as one: drafts, and what is already out
- `rate_steps`: how coarse rates must be to add nothing
- `repairs`: changes to a table; `trying`: all of them tried, and the true counts that they are published from
- `record`: the cells to act on, what a reviewer accepts, and where both are kept
"""

from unround.reviews.decision import Unsettled as Unsettled
from unround.reviews.layout import Origin as Origin
from unround.reviews.policy import Policy as Policy
from unround.reviews.policy import policy_of as policy_of
from unround.reviews.run import Draft as Draft
from unround.reviews.run import Review as Review
from unround.reviews.run import review as review
