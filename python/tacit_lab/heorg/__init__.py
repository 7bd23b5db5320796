"""The workloads of HomomorphicEncryption.org's benchmarks, computed by two parties that talk to each other."""
