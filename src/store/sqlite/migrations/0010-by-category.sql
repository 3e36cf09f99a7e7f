-- compatible from 1

-- The animals of a category, and of a category and status, for the console. Covers all columns, like pets_by_status.
CREATE INDEX pets_by_category ON pets (category_id, status, id, name);
