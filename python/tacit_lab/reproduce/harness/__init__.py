"""All tables in one unattended run, and the document that it writes."""
