"""Quantisation-aware training in the Winograd domain (UFO, section V)."""
