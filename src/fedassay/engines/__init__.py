"""Engines bring a tally about: in simulation, from files, over a network."""
