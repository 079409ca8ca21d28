"""Audit a whole release: every count that can be worked out of it, written into a folder. Start in `pipeline`."""

from unround.audits.block import Auditor as Auditor
from unround.audits.folder import AuditFolder as AuditFolder
from unround.audits.inferred import Inferred as Inferred
from unround.audits.inferred import Rules as Rules
from unround.audits.model import Model as Model
from unround.audits.run import AuditOptions as AuditOptions
from unround.audits.run import audit as audit
from unround.audits.run import survey as survey
