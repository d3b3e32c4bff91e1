"""What `ingot view` and `ingot report` show: plane pictures that a page plays, and curves."""
