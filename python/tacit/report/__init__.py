"""What people read: tables in the terminal and pages of HTML."""
