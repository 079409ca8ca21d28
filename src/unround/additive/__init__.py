"""Tables that add up: the whole numbers nearest to what is given for which every sum holds.

- `nearest`: of counts themselves: what was published, or drawn; START HERE
- `costs`: what is known of every count, and what it costs to show a number in its place
- `systems`: means that add up, and the nearest whole numbers that do: along a forest of sums, or by an integer program
- `rounding`: whole numbers, area by area and from the outermost areas inwards
"""

from unround.additive.nearest import nearest_whole as nearest_whole
