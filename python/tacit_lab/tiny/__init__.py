"""The networks of MLPerf Tiny."""
