-- compatible from 1

-- AUTOINCREMENT: an id is never assigned twice, not even after a row was deleted by hand.
CREATE TABLE pets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  category_id INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('available', 'pending', 'sold'))
) STRICT;

-- Covers all columns in the order of a list, so that a page of one status is read from this index alone.
CREATE INDEX pets_by_status ON pets (status, id, name, category_id);

-- Maintained by triggers, so that counting never reads the animals.
CREATE TABLE pet_counts (
  status TEXT PRIMARY KEY,
  count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO pet_counts VALUES ('available', 0), ('pending', 0), ('sold', 0);

CREATE TRIGGER pets_count_insert AFTER INSERT ON pets
BEGIN
  UPDATE pet_counts SET count = count + 1 WHERE status = new.status;
END;

CREATE TRIGGER pets_count_delete AFTER DELETE ON pets
BEGIN
  UPDATE pet_counts SET count = count - 1 WHERE status = old.status;
END;

CREATE TRIGGER pets_count_update AFTER UPDATE OF status ON pets
BEGIN
  UPDATE pet_counts SET count = count - 1 WHERE status = old.status;
  UPDATE pet_counts SET count = count + 1 WHERE status = new.status;
END;

CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL,
  email_folded TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  hash BLOB NOT NULL UNIQUE,
  environment TEXT NOT NULL CHECK (environment IN ('production', 'staging')),
  last_four TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  last_used_at INTEGER
) STRICT;

CREATE INDEX api_keys_by_account ON api_keys (account_id, created_at);

-- Finds the active keys of an account without reading all that were ever revoked.
CREATE INDEX api_keys_unrevoked ON api_keys (account_id, created_at) WHERE revoked_at IS NULL;

-- No reference to accounts: an account may be removed while its last create is in progress. Records expire within a day.
CREATE TABLE idempotency_records (
  account_id TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint BLOB NOT NULL,
  pet_id INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_records_by_age ON idempotency_records (created_at);

CREATE TABLE usage_counts (
  key_id TEXT NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
  hour INTEGER NOT NULL,
  operation TEXT NOT NULL,
  status INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  PRIMARY KEY (key_id, hour, operation, status)
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_counts_by_hour ON usage_counts (hour);

CREATE TABLE failed_requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  key_id TEXT NOT NULL,
  request_id TEXT NOT NULL,
  operation TEXT NOT NULL,
  status INTEGER NOT NULL,
  code TEXT NOT NULL,
  message TEXT NOT NULL
) STRICT;

CREATE INDEX failed_requests_by_account ON failed_requests (account_id, id);

CREATE TABLE sessions (
  token_hash BLOB PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_account ON sessions (account_id);

-- No reference to accounts: the audit trail outlives them. `detail` says from what to what something was changed.
CREATE TABLE audit_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  action TEXT NOT NULL,
  via TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT
) STRICT;

CREATE INDEX audit_events_by_account ON audit_events (account_id, id);

CREATE TRIGGER audit_events_no_update BEFORE UPDATE ON audit_events
BEGIN
  SELECT RAISE(ABORT, 'the audit trail is append-only');
END;

CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON audit_events
BEGIN
  SELECT RAISE(ABORT, 'the audit trail is append-only');
END;

-- How far each imported file has come, by its SHA-256: written in the transaction of its rows, so that an interrupted import
-- goes on exactly where it stopped.
CREATE TABLE imports (
  hash TEXT PRIMARY KEY,
  file TEXT NOT NULL,
  rows_done INTEGER NOT NULL,
  rows_total INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Facts about the database itself: its environment, and whether it is a copy that was not finished.
CREATE TABLE store_facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
