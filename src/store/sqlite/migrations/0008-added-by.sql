-- compatible from 1

-- The animals that one key or account has added, newest first.
CREATE INDEX pets_by_adder ON pets (added_by, id);
