"""Many servers behind one door."""
