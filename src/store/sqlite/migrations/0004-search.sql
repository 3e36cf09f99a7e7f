-- compatible from 1

-- The words of the animals' names in byte order, for the search. A chore fills it, so that creates do not pay for it.
CREATE TABLE pet_words (
  word TEXT NOT NULL,
  pet_id INTEGER NOT NULL,
  PRIMARY KEY (word, pet_id)
) STRICT, WITHOUT ROWID;

-- The words of all animals up to until_id are in pet_words.
CREATE TABLE pet_words_progress (
  only_row INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
  until_id INTEGER NOT NULL
) STRICT;

INSERT INTO pet_words_progress (until_id) VALUES (-9223372036854775808);

-- The former names of animals whose words in pet_words are out of date. The triggers
-- also note changes that another program or a person makes by SQL.
CREATE TABLE pet_renames (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  pet_id INTEGER NOT NULL,
  name TEXT NOT NULL
) STRICT;

CREATE TRIGGER pets_rename AFTER UPDATE OF name ON pets WHEN old.name <> new.name
BEGIN
  INSERT INTO pet_renames (pet_id, name) VALUES (old.id, old.name);
END;

CREATE TRIGGER pets_rename_delete AFTER DELETE ON pets
BEGIN
  INSERT INTO pet_renames (pet_id, name) VALUES (old.id, old.name);
END;
