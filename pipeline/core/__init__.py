"""What all stages share: types, parameters, schemas of tables, and files."""
