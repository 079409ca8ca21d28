"""The colours of everything: one table, from which the stylesheet's tokens are made.

A claim is the redder the surer it is: dark red for proved, orange for conditional, amber for likely, grey for open. Green is
left out, because it would read as "safe". Each kind has a colour for text, which stands out from the page and from its own
tint by 4.5 to 1, and one for bars, which stands out by 3 to 1 and gets lighter from proved to open, so that the kinds can be
told apart without seeing colours. The series colours mean nothing but "another one".
"""

from __future__ import annotations

PALETTE: dict[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#14181b"),
    "card": ("#f5f6f8", "#1c2126"),
    "ink": ("#1d2328", "#e6e9eb"),
    "soft": ("#56616b", "#a3adb5"),
    "line": ("#dfe3e6", "#30383e"),
    "line-strong": ("#8a949c", "#74808a"),
    "link": ("#1a5c8a", "#8cc4ee"),
    "tint": ("#eef3f7", "#222a30"),
    "here": ("#fff6dc", "#39331c"),
    "warn": ("#5f3a94", "#cbb4f3"),
    "warn-tint": ("#f2ecfa", "#2b2440"),
    "proved": ("#961a1e", "#ff9a93"),
    "proved-bar": ("#a01d21", "#f4655f"),
    "proved-tint": ("#fbe6e4", "#45201f"),
    "conditional": ("#a23f08", "#ffab70"),
    "conditional-bar": ("#d55a16", "#f9964a"),
    "conditional-tint": ("#fdebdf", "#42290f"),
    "likely": ("#785000", "#f6d37a"),
    "likely-bar": ("#c08300", "#f3c955"),
    "likely-tint": ("#fcf2d6", "#3d3314"),
    "open": ("#56616b", "#a3adb5"),
    "open-bar": ("#87919a", "#78838c"),
    "open-tint": ("#eceff1", "#2b3237"),
    "given": ("#56616b", "#a3adb5"),
    "given-bar": ("#87919a", "#78838c"),
    "given-tint": ("#eceff1", "#2b3237"),
    "series-1": ("#2b6cb0", "#6aaeee"),
    "series-2": ("#7548b8", "#b794f4"),
    "series-3": ("#b83280", "#f08cc3"),
    "series-4": ("#0e7c86", "#4fc3cf"),
    "series-5": ("#6b6259", "#b5aba1"),
}
"""Each token's colour on a light and on a dark page."""


def tokens() -> str:
    """Return the stylesheet's tokens: light ones, and dark ones for readers who prefer them; print is light."""
    light, dark = (";".join(f"--{name}:{pair[k]}" for name, pair in PALETTE.items()) for k in (0, 1))
    return f":root{{color-scheme:light dark;{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
