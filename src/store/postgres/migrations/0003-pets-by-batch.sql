-- compatible from 1
-- concurrently

-- The animals that came with a file, for its Undo.
CREATE INDEX CONCURRENTLY pets_by_batch ON pets (batch_id, id) WHERE batch_id IS NOT NULL;
