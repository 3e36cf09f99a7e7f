-- AUTOINCREMENT: an id is never given twice, not even after a row is deleted by hand.
CREATE TABLE pets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  category_id INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('available', 'pending', 'sold'))
) STRICT;

-- Holds whole animals in the order of a list, so that a page of one status is read from here alone.
CREATE INDEX pets_by_status ON pets (status, id, name, category_id);

-- Kept by triggers, so that a count never reads the animals.
CREATE TABLE pet_counts (
  status TEXT PRIMARY KEY,
  count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO pet_counts VALUES ('available', 0), ('pending', 0), ('sold', 0);

CREATE TRIGGER pets_counted_in AFTER INSERT ON pets
BEGIN
  UPDATE pet_counts SET count = count + 1 WHERE status = new.status;
END;

CREATE TRIGGER pets_counted_out AFTER DELETE ON pets
BEGIN
  UPDATE pet_counts SET count = count - 1 WHERE status = old.status;
END;

CREATE TRIGGER pets_counted_over AFTER UPDATE OF status ON pets
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
  last_four TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  last_used_at INTEGER
) STRICT;

CREATE INDEX api_keys_by_account ON api_keys (account_id, created_at);

-- No reference to accounts: one may be removed while its last create is on the way. Records end within a day anyway.
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

-- Outlives the accounts it tells of, hence no reference to them.
CREATE TABLE audit_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  action TEXT NOT NULL,
  via TEXT NOT NULL,
  subject TEXT NOT NULL
) STRICT;

CREATE INDEX audit_events_by_account ON audit_events (account_id, id);

CREATE TRIGGER audit_events_stay BEFORE UPDATE ON audit_events
BEGIN
  SELECT RAISE(ABORT, 'the audit trail is append-only');
END;

CREATE TRIGGER audit_events_remain BEFORE DELETE ON audit_events
BEGIN
  SELECT RAISE(ABORT, 'the audit trail is append-only');
END;
