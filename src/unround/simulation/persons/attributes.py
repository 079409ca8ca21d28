"""What is known of a simulated person, and the values it can have."""

from __future__ import annotations

from collections.abc import Mapping

AGE, SEX = "age", "sex"
OLDEST = 100
"""Ages are single years; this one stands for itself and all above."""

AREA, KEY = "region", "key"
"""The columns of a file of persons that are no attributes: where a person lives, and the person's key."""

COLLECTIVE = "in a collective"

VALUES: Mapping[str, tuple[str, ...]] = {
    AGE: tuple(str(age) for age in range(OLDEST + 1)),
    SEX: ("men", "women"),
    "marital": ("never married", "married", "common-law", "separated", "divorced", "widowed"),
    "household": ("1 person", "2 persons", "3 persons", "4 persons", "5 or more persons", COLLECTIVE),
    "language": ("English", "French", "Chinese", "Punjabi", "another language"),
    "birthplace": ("this province", "another province", "Europe", "Asia", "the Americas", "Africa"),
    "religion": ("no religion", "Christian", "Muslim", "Sikh or Hindu", "another religion"),
    "education": ("under 15", "no certificate", "secondary school", "trade or college", "university"),
}
"""All attributes, each with its values in the order of its codes."""
