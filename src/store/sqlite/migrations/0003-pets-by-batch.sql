-- compatible from 1

-- The animals that came with a file, for its Undo; the id ends every index.
CREATE INDEX pets_by_batch ON pets (batch_id) WHERE batch_id IS NOT NULL;
