"""How much of each person could be reconstructed from tables, measured on people whose truth is known, and only there.

- `run`: START HERE. `reconstruct` is the whole way
- `ondisk`: areas and persons on disk, of which a few are in memory at a time
- `records`: the truth, and whether `simulate` drew it
- `queries`: what each published column counts
- `verification`: columns held against the records
- `law`: the national law, learnt from other areas
- `evidence`: what is published, as arrays
- `arrays`: what the chain takes
- `start`: where a chain begins
- `chain`: worlds that fit the tables, drawn by a chain over records
- `guess`: the four guesses, from more and more of what is published
- `score`: records ranked by confidence, and held against the truth
- `tally`: what follows for all areas
- `inquiry`: questions to many areas, block by block
- `cluster`: the same by the workers of a Dask cluster
- `ways`: the same tables published in other ways, and with one table left out
- `bounds`: bounds on every cell of the full cross table
- `claims`: what is so in every world that fits
- `certificates`: some of it written out step by step, and checked
- `solver`: how different two fitting worlds can be, and what all of them have in common
- `sampled`: the last six, in a sample of areas
"""

from unround.reconstruction.run import Reconstruction, ReconstructOptions, reconstruct

__all__ = ["ReconstructOptions", "Reconstruction", "reconstruct"]
