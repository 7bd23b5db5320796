"""Both ends of a session, a pair of them on this machine, and suite lola by files."""
