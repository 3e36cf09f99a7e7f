-- compatible from 1
-- concurrently

-- The animals that one key or account has added, newest first.
CREATE INDEX CONCURRENTLY pets_by_adder ON pets (added_by, id);
