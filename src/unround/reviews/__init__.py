"""From a draft table to a decision: publish, revise, stop or undecided. Start in `run`.

- `run`: the whole review, from a table to a folder; `result`: what it has to say
- `policy`: what may be published, and its rules as sentences
- `drafts`: a draft as it is, audited; `table`: its counts, or what a repair makes of them
- `exposure`: what readers can learn from a table, at the highest probability
- `decision`: a table held against a policy, and what is not settled
- `questions`: what a table would tell if something held that nobody says
- `contents`: everything that a file holds beside its counts; `numbers`: why a number there is harmless, or a question
- `layout`: a table written back as it came; `applying`: with a repair
- `together`: several tables as one: drafts, and what is already out
- `rate_steps`: how coarse rates must be to add nothing
- `repairs`: changes to a table; `complements`: which counts to hide beside others
- `trying`: all repairs tried, and the true counts that they are published from
- `record`: the cells to act on, what a reviewer accepts, and where both are kept
"""

from unround.reviews.decision import Unsettled as Unsettled
from unround.reviews.drafts import DraftTable as DraftTable
from unround.reviews.layout import Origin as Origin
from unround.reviews.policy import Policy as Policy
from unround.reviews.policy import policy_of as policy_of
from unround.reviews.result import JointReview as JointReview
from unround.reviews.result import Review as Review
from unround.reviews.result import TableReview as TableReview
from unround.reviews.run import review as review
