"""`discreet reproduce`: one module a paper, and what they share."""
