"""Experiments with tacit: training, the tables of papers, and accuracies. The product never imports this package."""
