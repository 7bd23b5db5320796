"""How good models are and what they cost: accuracy, similarity, benches, and the calibration of this machine."""
