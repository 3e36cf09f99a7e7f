-- compatible from 1

-- How the rows of a file become animals, as a text that the console alone reads (import-plan.ts): as far as the person has said, and as it was
-- when the import began. Its animals have the number of its batch.
ALTER TABLE uploads ADD COLUMN plan TEXT;
ALTER TABLE imports ADD COLUMN plan TEXT;
ALTER TABLE imports ADD COLUMN batch_id INTEGER;
