"""Comet (2405.17485) in the clear: its inverse square roots and encoders that compute with them, in numpy."""
