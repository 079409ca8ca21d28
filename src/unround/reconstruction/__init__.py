"""How much of each person could be reconstructed from tables, measured on people whose truth is known, and only there.

- `run`: START HERE. `reconstruct` is the whole way: questions to many areas; ways of publishing, tables left out and
  claims in a sample of areas
- `records`: the truth, and whether `simulate` drew it; the national law, learnt from other areas; arrays and files of these
- `queries`: what each published column counts, compared with the records, and as arrays
- `chain`: worlds that fit the tables, drawn by a chain over records, and the four guesses made from them
- `score`: records ranked by confidence and compared with the truth, and what follows for all areas
- `claims`: what is so in every world that fits: bounds, a solver, certificates
"""

from unround.reconstruction.run import Reconstruction, reconstruct

__all__ = ["Reconstruction", "reconstruct"]
