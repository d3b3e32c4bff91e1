"""What `ingot view` makes of fields: plane pictures, a page that plays them, PNG files."""
