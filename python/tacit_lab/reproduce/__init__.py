"""The tables of papers beside the numbers of this code."""
