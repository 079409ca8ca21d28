"""What a table does not tell: a question, its possible answers, and the one that is taken if nobody is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """Something that only a person can know.

    - `key`: What it is about: "sheet", "value", "missing", or the sign in question.
    - `text`: The question, in one sentence.
    - `choices`: The possible answers.
    - `default`: The answer if nobody is asked; "" if there is none that would be safe, so that the question has to be
      answered.
    """

    key: str
    text: str
    choices: tuple[str, ...]
    default: str


Ask = Callable[[Question], str]
"""Asks a person; returns one of the choices, or "" for no answer."""


def take_default(question: Question) -> str:
    """Answer as if nobody were there."""
    return question.default
