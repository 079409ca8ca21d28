"""Boundaries: the shapes of areas, so that findings can be shown on a map.

- `reading`: GeoJSON and TopoJSON, gzipped or not → shapes with properties
- `projecting`: degrees → a plane on which areas keep their size
- `matching`: which shape is which area, by the codes in one of its properties
- `shapes`: `Boundaries`, the shapes of an audit's areas on a grid, small enough to keep in its folder; simplified for a
  drawing of any size

Everything happens on this machine: no tiles, no network.
"""

from unround.boundaries.matching import matched_in_words as matched_in_words
from unround.boundaries.reading import read_shapes as read_shapes
from unround.boundaries.shapes import Boundaries as Boundaries
from unround.boundaries.shapes import boundaries_of as boundaries_of
from unround.boundaries.shapes import keep_boundaries as keep_boundaries
from unround.boundaries.shapes import kept_boundaries as kept_boundaries
