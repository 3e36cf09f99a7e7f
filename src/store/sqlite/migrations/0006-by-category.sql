-- compatible from 1

-- The animals of a category in each status, for the console; the id ends every index.
CREATE INDEX pets_by_category ON pets (category_id, status);
