"""Audit a whole release: every count that can be worked out of it, written into a folder. Start in `pipeline`."""

from unround.audit.block import Auditor as Auditor
from unround.audit.folder import AuditFolder as AuditFolder
from unround.audit.inferred import Inferred as Inferred
from unround.audit.inferred import Rules as Rules
from unround.audit.model import Model as Model
from unround.audit.pipeline import Options as Options
from unround.audit.pipeline import audit as audit
from unround.audit.pipeline import survey as survey
