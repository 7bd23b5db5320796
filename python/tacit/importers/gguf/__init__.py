"""Files of llama.cpp (.gguf): one file with a model, its tokenizer and its chat template."""

from tacit.importers.gguf.directory import as_directory, is_gguf

__all__ = ["as_directory", "is_gguf"]
