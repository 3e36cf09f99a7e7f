-- compatible from 1

-- The names that people give to the numbers of categories. A category without a name has no row.
CREATE TABLE categories (
  number BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  name_folded TEXT COLLATE "C" NOT NULL UNIQUE
);
