"""What all results can do: be printed as the terminal shows them, appear in a notebook, and become tables."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from unround.results.frames import pandas_frame

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

_Result = TypeVar("_Result")


class Shown:
    """A result that shows itself: `print` gives what the terminal would show, and a notebook makes a card of it."""

    __slots__ = ()

    def _show(self, console: Console) -> None:
        """Print it as the command does."""
        raise NotImplementedError

    def __str__(self) -> str:
        from unround.show.notebook import text

        return text(self._show)

    def _repr_html_(self) -> str:
        from unround.show.notebook import text_card

        return text_card(self._show)


class Tabular(Shown):
    """A result that is a table as well."""

    __slots__ = ()

    def to_polars(self) -> pl.DataFrame:
        """Return it as a table of polars."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return it as a table of pandas."""
        return pandas_frame(self.to_polars())


def as_result(kind: type[_Result], found: Any) -> _Result:
    """Return what a package below has found as the class that can show itself: its fields are the same."""
    return kind(**{one.name: getattr(found, one.name) for one in fields(found)})
