"""What is known of every cell of a block of areas: the counts that are possible, and how much each weighs.

- `block`: the arrays that bounds and engines take and return; the windows of published counts
- `convolution`: weights of sums, compiled
- `keys`: tables in which random numbers add up
- `cells`: START HERE: `Block`, what is known of some areas, as bounds and engines take it; the weight of each count
"""
