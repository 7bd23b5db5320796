"""A discrete-event simulator of a fleet, driven by measured costs of sessions."""
