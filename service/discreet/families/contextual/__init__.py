"""What a newcomer writes for "a vector of numbers, a list of items": a model that generalises.

document      what a person writes
blocks        what a space of contexts is to the sums, and where they are kept
cells         up to three numbers: equal cells of the cube
spaces        which space there is; more numbers: linear features; how far a record moves the sums
sums          what was released, and how a release is added to it
estimates     from released sums to means, with what is not known about them
fit_cells, fit_linear
              the same for each kind of space
model         the released model, and decisions from it
learning      feedback to sums, sums to the next model
guarantee     the card
recommender   the contract, for this family
"""
