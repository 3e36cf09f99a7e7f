-- The initial database of the hand-written peers: the table as one would write it, and 1,000 animals.
PRAGMA journal_mode = WAL;
CREATE TABLE pets (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, categoryId INTEGER NOT NULL, status TEXT NOT NULL);
CREATE INDEX pets_by_status ON pets (status);
INSERT INTO pets (name, categoryId, status)
  WITH RECURSIVE counted (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM counted WHERE number < 1000)
  SELECT 'Bella the Brave', 3, 'available' FROM counted;
