-- compatible from 1

-- When an animal was added, and by which key or account; NULL if an earlier release added it. Only pages for people read it.
ALTER TABLE pets ADD COLUMN added_at INTEGER;
ALTER TABLE pets ADD COLUMN added_by TEXT;
