"""Faults between real processes: every kind at every phase, files, inputs, trust, load."""
