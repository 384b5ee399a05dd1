"""How classes may share what a survey spends."""

from enum import Enum


class ClassDesign(Enum):
    """How classes share what may be spent."""

    EVERY = "every"
    """All answer for every class, with a share of epsilon each."""
    DRAWN = "drawn"
    """Each unit answers one part, drawn at random, with all of epsilon."""
    OWN = "own"
    """Positives of all classes in one part, negatives of each in its own."""
