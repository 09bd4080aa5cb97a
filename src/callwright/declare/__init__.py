"""How a user declares an agent: tools, spoken arguments, schemas."""
