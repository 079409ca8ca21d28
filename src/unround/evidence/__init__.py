"""What is known of every cell of a block of areas: the counts that are possible, and how much each weighs.

- `block`: START HERE: the arrays that bounds and engines take and return; the windows of published counts
- `convolution`: weights of sums, compiled
- `keys`: tables in which random numbers add up
- `cells`: what the engines read: likelihood times prior, count by count
"""
