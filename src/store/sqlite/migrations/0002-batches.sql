-- compatible from 1

-- What people did to many animals at once, and the files that they brought in: a line of the history each. `form` tells a form that is sent
-- twice; `data` says what was done, as JSON (batch.ts). Of `total` animals `done` were looked at, up to the id `place`, and
-- `changed` were changed, removed or added. A batch that takes another one back names it in `undoes`, and that one names it in `undone_by`.
CREATE TABLE batches (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  via TEXT NOT NULL,
  action TEXT NOT NULL,
  data TEXT NOT NULL,
  form TEXT UNIQUE,
  total INTEGER NOT NULL,
  done INTEGER NOT NULL DEFAULT 0,
  changed INTEGER NOT NULL DEFAULT 0,
  place INTEGER,
  undoes INTEGER,
  undone_by INTEGER
) STRICT;

CREATE INDEX batches_by_account ON batches (account_id, id);

-- The animals of a batch, as they were when it began (JSON), and what became of each. Purged after some days.
CREATE TABLE batch_pets (
  batch_id INTEGER NOT NULL,
  pet_id INTEGER NOT NULL,
  former TEXT NOT NULL,
  state TEXT NOT NULL,
  PRIMARY KEY (batch_id, pet_id)
) STRICT, WITHOUT ROWID;

-- The changes of one batch.
CREATE INDEX audit_events_by_batch ON audit_events (batch_id, id) WHERE batch_id IS NOT NULL;
