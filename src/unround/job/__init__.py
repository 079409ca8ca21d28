"""A whole audit as a job: cut into blocks, worked on, resumed, distributed, put together, and verified. Start in `run`.

- `run`: the whole audit, from a file to a folder
- `work`: blocks that are written whole or not at all, and put together again; `cluster`: on several machines
- `folder`: the finished audit, how areas and counts are found in it, and whether its files are as the audit left them
- `shapes`: what its files say, and look like
- `verify`: whether its certificates prove what it says
"""

from unround.job.folder import AuditFolder as AuditFolder
from unround.job.run import AuditRun as AuditRun
from unround.job.run import audit as audit
from unround.job.run import survey as survey
