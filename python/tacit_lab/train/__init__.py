"""Training of the shipped models. Needs PyTorch, which lives in `.venv-train` only (`make train`)."""
