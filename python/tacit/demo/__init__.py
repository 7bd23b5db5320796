"""The demonstrations, with pictures and with text."""
