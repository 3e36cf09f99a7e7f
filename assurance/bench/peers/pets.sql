-- The initial animals of the hand-written peers, in the table as one would write it for either engine.
CREATE INDEX pets_by_status ON pets (status, id);
INSERT INTO pets (name, "categoryId", status)
  WITH RECURSIVE counted (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM counted WHERE number < :animals)
  SELECT
    CASE number % 4 WHEN 0 THEN 'Bella the Brave' WHEN 1 THEN 'Luna' WHEN 2 THEN 'Max Junior' ELSE 'Ziggy' END,
    number % 12 + 1,
    CASE WHEN number % 20 < 14 THEN 'available' WHEN number % 20 < 17 THEN 'pending' ELSE 'sold' END
  FROM counted;
