"""Many inputs over many sessions: what is done is kept, what fails is tried again."""
