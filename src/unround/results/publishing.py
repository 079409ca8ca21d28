"""Results about ways of publishing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unround import comparison, reconstruction, reviews, scenarios
from unround.comparison import worlds
from unround.protection import release as protection
from unround.results.shown import Shown

if TYPE_CHECKING:
    from rich.console import Console


class WhatIf(Shown, scenarios.WhatIf):
    """What `unround.whatif` returns: what one more table would expose, and what each repair of it leaves."""

    def _show(self, console: Console) -> None:
        from unround.show.terminal.whatif import show_whatif

        show_whatif(self.to_json(), console)


class RateSteps(Shown, scenarios.RateSteps):
    """What `unround.whatif` returns where it is asked about rates: how coarse they must be to add nothing."""

    def _show(self, console: Console) -> None:
        from unround.show.terminal.rate_steps import show_rate_steps

        show_rate_steps(self.to_json(), console)


class Review(Shown, reviews.Review):
    """What `unround.review` returns: the decision on a draft table, and everything that led to it."""

    def _show(self, console: Console) -> None:
        from unround.show.terminal.review import show_review

        show_review(self.to_json(), console, self.folder)


class Protected(Shown, protection.Protected):
    """What `unround.protect` returns: what was done to the counts, and what it cost."""

    def _show(self, console: Console) -> None:
        from unround.show.terminal.protect import show_protected

        show_protected(self, console)


class Comparison(Shown, comparison.Comparison):
    """What `unround.compare` returns: risk and error of several ways of publishing."""

    def _show(self, console: Console) -> None:
        from unround.show.terminal.compare import show_comparison

        show_comparison(self.to_json(), console)


class Calibrations(Shown, worlds.Calibrations):
    """What `unround.calibrate` returns: how often claims are right."""

    def _show(self, console: Console) -> None:
        from unround.show.terminal.calibrate import show_calibration

        show_calibration(self.to_json(), console)


class Reconstruction(Shown, reconstruction.Reconstruction):
    """What `unround.reconstruct` returns: how much of each person tables give away."""

    def _show(self, console: Console) -> None:
        from unround.show.terminal.reconstruct import show_reconstruction

        show_reconstruction(self.to_json(), console)
