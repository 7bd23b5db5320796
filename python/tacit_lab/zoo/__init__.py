"""The model zoo: architectures as people export them, compiled, compared with their float models, and some run."""
