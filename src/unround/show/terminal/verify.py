"""What `unround verify` prints."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from unround.audits.verification import Verification
from unround.show.words import number, several

MOST_PROBLEMS = 20
"""Problems that are listed; the others are counted."""


def show_verification(found: Verification, console: Console) -> None:
    """Print whether an audit folder is in order."""
    if found.holds:
        console.print(Text("Everything is as the audit left it.", style="bold"))
        console.print(Text(f"  {several(found.files, 'file')} with the right hash"))
        console.print(
            Text(f"  {several(found.certificates, 'certificate')} checked against the published counts, one for each ")
            + Text("proved or conditional finding")
        )
        return
    console.print(Text(f"{several(len(found.problems), 'problem')} found:", style="bold red"))
    for problem in found.problems[:MOST_PROBLEMS]:
        console.print(Text(f" • {problem}"))
    if len(found.problems) > MOST_PROBLEMS:
        console.print(Text(f"   and {number(len(found.problems) - MOST_PROBLEMS)} more; --json gives them all."))
    console.print(Text("Do not rely on this folder: run the audit again."))
