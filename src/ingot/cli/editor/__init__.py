"""What editors ask about an input file, broken or not: its outline, schemas, answers, problems."""
