"""Inputs of models: examples, pictures and texts, and how they become numbers."""
