-- compatible from 1

-- When an animal was added, and by which key or account; NULL if an earlier release added it. Only pages for people read it.
ALTER TABLE pets ADD COLUMN added_at INTEGER;
ALTER TABLE pets ADD COLUMN added_by TEXT;

-- The names that people give to the numbers of categories. A category without a name has no row.
CREATE TABLE categories (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  name_folded TEXT NOT NULL UNIQUE
) STRICT;

-- Finds the changes of an animal by its id, which ends the subject: "Rex (42)", its removal included.
CREATE INDEX audit_events_by_pet ON audit_events (substr(subject, length(rtrim(subject, '-0123456789)')) + 1), id)
  WHERE action IN ('pet.changed', 'pet.removed');

DROP INDEX audit_events_by_animal;

-- The changes and removals of animals, newest first, of all accounts and of one.
CREATE INDEX audit_events_of_pets ON audit_events (id) WHERE action IN ('pet.changed', 'pet.removed');

CREATE INDEX audit_events_of_pets_by_account ON audit_events (account_id, id) WHERE action IN ('pet.changed', 'pet.removed');
