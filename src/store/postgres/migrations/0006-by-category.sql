-- compatible from 1
-- concurrently

-- The animals of a category in each status, for the console.
CREATE INDEX CONCURRENTLY pets_by_category ON pets (category_id, status, id);
