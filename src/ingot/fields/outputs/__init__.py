"""What a run writes: tables, fields for viewers, Exodus files."""
