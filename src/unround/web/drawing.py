"""Pictures drawn on the server as SVG, in the colours of the page: light or dark, they are the same picture."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from unround.presentation.terminal import percent
from unround.web.outline import OutlineTable

STEP, LEFT, TOP, HEIGHT, FOOT = 30, 46, 16, 190, 44
FEW = 30
"""Counts of which all are shown, however unlikely."""
FAR = 12
"""Up to so far from the possible counts the published one is shown beside them."""
MOST_BARS = 320
"""Bars that fit side by side; where there are more counts, several share one."""
ALIKE = 1e-9
"""Probabilities that differ by less than this share are equal."""

ROW, LABELS, WIDTH = 22, 260, 26


def shown_part(distribution: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the part of a long distribution that can be seen: a tail of less than a 200th of the peak is not drawn."""
    if len(distribution) <= FEW:
        return list(distribution)
    least = max(p for _, p in distribution) / 200
    return [(value, p) for value, p in distribution if p >= least]


def histogram(distribution: Sequence[tuple[int, float]], *, name: str, kind: str, published: int | None) -> Markup:
    """Draw how likely each count is.

    Parameters
    ----------
    distribution : sequence
        Counts with their probabilities, ascending.
    name : str
        Whose, for those who cannot see the picture.
    kind : str
        Colours the bars.
    published : int or None
        Marked under the axis, where it is in sight.
    """
    counts = shown_part(distribution)
    first, last = counts[0][0], counts[-1][0]
    if published is not None and first - FAR <= published <= last + FAR:
        first, last = min(first, published), max(last, published)
    each = -(-(last - first + 1) // MOST_BARS)  # counts that share a bar: one, unless there are very many
    places = -(-(last - first + 1) // each)
    bars: dict[int, float] = {}
    for value, p in counts:
        at = (value - first) // each
        bars[at] = bars.get(at, 0.0) + p
    step = 44 if places <= 5 else 36 if places <= 7 else STEP if places <= 18 else max(2.0, 640 / places)
    wide = max(places * step, 200)
    largest = max(bars.values())
    top, ticks = _scale(largest)
    start = LEFT + (wide - places * step) / 2
    floor = TOP + HEIGHT
    drawn = []
    for tick in ticks:
        y = floor - HEIGHT * tick / top
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + wide:g}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:.0%}</text>')
    for at, p in bars.items():
        x, tall = start + at * step, max(HEIGHT * p / top, 0.8)
        gap = 2 if step > 8 else 0.3
        best = " best" if p >= largest * (1 - ALIKE) else ""
        low = first + at * each
        which = f"{low:,}" if each == 1 else f"{low:,}–{low + each - 1:,}"
        drawn.append(
            f'<rect class="bar{best}" x="{x + gap:.1f}" y="{floor - tall:.1f}" width="{step - 2 * gap:.1f}" '
            f'height="{tall:.1f}" rx="{2 if step > 8 else 0}"><title>{which}: {percent(p)}</title></rect>'
        )
        if step >= STEP and p >= largest / 50:
            drawn.append(f'<text class="share" x="{x + step / 2:.1f}" y="{floor - tall - 4:.1f}">{100 * p:.0f}</text>')
    room = 8 * len(f"{last:,}") + 10
    every = max(1, -(-room // int(step)))
    for at in range(0, places, every):
        x = start + (at + 0.5) * step
        drawn.append(f'<text class="tick" x="{x:.1f}" y="{floor + 16}" text-anchor="middle">{first + at * each:,}</text>')
    if published is not None and first <= published <= last:
        x = start + ((published - first) // each + 0.5) * step
        drawn.append(f'<path class="mark" d="M{x:.1f} {floor + 21} l5 8 h-10 z"/>')
        anchor = "start" if x < LEFT + 40 else "end" if x > LEFT + wide - 40 else "middle"
        drawn.append(f'<text class="note" x="{x:.1f}" y="{floor + 41}" text-anchor="{anchor}">published</text>')
    said = in_words(distribution, published)
    return Markup(
        f'<svg class="histogram {escape(kind)}" role="img" aria-label="{escape(name)}: {escape(said)}" '
        f'viewBox="0 0 {LEFT + wide + 8:g} {floor + FOOT}" width="{LEFT + wide + 8:g}" height="{floor + FOOT}">'
        f'<line class="axis" x1="{LEFT}" x2="{LEFT + wide:g}" y1="{floor}" y2="{floor}"/>{"".join(drawn)}</svg>'
    )


def in_words(distribution: Sequence[tuple[int, float]], published: int | None) -> str:
    """Say what a histogram shows, the likeliest counts first."""
    best = sorted(distribution, key=lambda one: -one[1])[:5]
    listed = ", ".join(f"{value:,} with {percent(p)}" for value, p in best)
    more = f", and {len(distribution) - len(best)} more possible counts" if len(distribution) > len(best) else ""
    seen = "nothing was published" if published is None else f"published was {published:,}"
    return f"histogram of the possible true counts; {seen}; {listed}{more}"


def _scale(largest: float) -> tuple[float, list[float]]:
    """Return the top of an axis of probabilities, and where to draw its lines."""
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5):
        if largest <= 4 * step:
            number = max(1, -int(-largest // step))
            return step * number, [step * k for k in range(number + 1)]
    return 1.0, [0.0, 0.5, 1.0]


def map_of(table: OutlineTable, heads: frozenset[int], parts: frozenset[int], *, labels: bool) -> Markup:
    """Draw the sums of a table: a rectangle a line, and to its right those that stand under it, adding up to its height.

    Parameters
    ----------
    table : OutlineTable
        Its lines.
    heads, parts : frozenset of int
        The lines that are totals of a sum that is used, and those that are parts of one.
    labels : bool
        Whether to write beside the leaves what they are; without, the picture is small.
    """
    leaves = [line for line in table.lines if line.at not in table.parents]
    row = ROW if labels else max(1.0, min(6.0, 90 / max(1, len(leaves))))
    wide = WIDTH if labels else 14
    top: dict[int, float] = {line.at: place * row for place, line in enumerate(leaves)}
    tall: dict[int, float] = {line.at: row for line in leaves}
    under: dict[int, list[int]] = {}
    for line in table.lines:
        if line.parent is not None:
            under.setdefault(line.parent, []).append(line.at)
    for line in reversed(table.lines):  # children come after their parents
        if line.at in under:
            top[line.at] = min(top[child] for child in under[line.at])
            tall[line.at] = sum(tall[child] for child in under[line.at])
    levels = 1 + max(line.level for line in table.lines)
    drawn = []
    for line in table.lines:
        kind = "head" if line.at in heads else "part" if line.at in parts else "alone"
        end = levels * wide if line.at not in under else (line.level + 1) * wide
        x, y = line.level * wide, top[line.at]
        gap = 1 if labels else 0.4
        title = f"<title>{escape(line.label)}</title>" if labels else ""
        drawn.append(
            f'<rect class="{kind}" x="{x + gap:g}" y="{y + gap:.1f}" width="{end - x - 2 * gap:g}" '
            f'height="{max(tall[line.at] - 2 * gap, 0.5):.1f}" rx="{2 if labels else 0}">{title}</rect>'
        )
        if labels and line.at not in under:
            text = line.label if len(line.label) <= 44 else line.label[:43] + "…"
            drawn.append(f'<text class="name" x="{levels * wide + 8}" y="{y + row * 0.7:.1f}">{escape(text)}</text>')
    width, height = levels * wide + (LABELS if labels else 0), max(len(leaves) * row, 4)
    used = sum(line.at in heads for line in table.lines)
    said = f"Map of {escape(table.name)}: {len(table.lines)} lines, {used} of them totals whose parts make them up"
    return Markup(
        f'<svg class="map" role="img" aria-label="{said}" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}">{"".join(drawn)}</svg>'
    )
