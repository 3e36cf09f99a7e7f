-- compatible from 1

-- AUTOINCREMENT: an id is never assigned twice, not even after a row was deleted by hand. added_by is a key or an account; only pages for
-- people read it. The search reads name_folded, which the service computes; NULL for an animal that was added by hand.
CREATE TABLE pets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  category_id INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('available', 'pending', 'sold')),
  name_folded TEXT,
  added_at INTEGER,
  added_by TEXT,
  batch_id INTEGER
) STRICT;

-- Covers all columns in the order of a list, so that a page of one status is read from this index alone.
CREATE INDEX pets_by_status ON pets (status, id, name, category_id);

-- The animals of a category in each status, for the console; the id ends every index.
CREATE INDEX pets_by_category ON pets (category_id, status);

-- The animals that one account has added in the console: the id of an account is below 'key', that of a key is not. So
-- creates with a key do not write to it.
CREATE INDEX pets_added_in_console ON pets (added_by) WHERE added_by < 'key';

-- The names that people give to the numbers of categories. A category without a name has no row. One whose name was removed keeps its row:
-- no other name gets its number.
CREATE TABLE categories (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  name_folded TEXT NOT NULL UNIQUE,
  removed_at INTEGER
) STRICT;

-- role: what an account may do in the console: 'manager', 'member', or 'keyless' for a member without the right to keys. A
-- person may have a name, which no other open account has.
CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL,
  email_folded TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  role TEXT NOT NULL DEFAULT 'member',
  name TEXT,
  name_folded TEXT UNIQUE
) STRICT;

CREATE INDEX accounts_by_age ON accounts (created_at, id);

-- The names that closed accounts had.
CREATE TABLE former_people (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Links that managers pass on, by the SHA-256 of their token. A link is removed when it is used. Without an account it is an
-- invitation, else it sets a new password, and is void if the account has another by now than the one of replaces_hash. An invitation may
-- say for whom it is, and the role of the account.
CREATE TABLE account_links (
  hash TEXT PRIMARY KEY,
  account_id TEXT REFERENCES accounts (id) ON DELETE CASCADE,
  made_by TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  expires_at INTEGER NOT NULL,
  replaces_hash TEXT,
  name TEXT,
  role TEXT
) STRICT, WITHOUT ROWID;

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

-- No reference to accounts: the audit trail outlives them. `detail` says in words from what to what something was changed. What
-- happened to an animal is data, as JSON (PetData in account-store.ts); batch_id is that of changes of many at once.
CREATE TABLE audit_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  action TEXT NOT NULL,
  via TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT,
  pet_id INTEGER,
  data TEXT,
  batch_id INTEGER
) STRICT;

CREATE INDEX audit_events_by_account ON audit_events (account_id, id);

-- The changes of an animal, its removal included. Creates write no audit event.
CREATE INDEX audit_events_by_pet ON audit_events (pet_id, id)
  WHERE action IN ('pet.changed', 'pet.removed');

-- The changes and removals of animals, newest first, of all accounts and of one.
CREATE INDEX audit_events_of_pets ON audit_events (id) WHERE action IN ('pet.changed', 'pet.removed');
CREATE INDEX audit_events_of_pets_by_account ON audit_events (account_id, id) WHERE action IN ('pet.changed', 'pet.removed');

-- When the person of an account was last seen.
CREATE INDEX audit_events_of_sessions ON audit_events (account_id, id) WHERE action IN ('session.started', 'session.ended');

-- The events of one account that its security log never folds (security-log.ts), newest first: wrong passwords and sign-ins, however many
-- a stranger causes, are not among them.
CREATE INDEX audit_events_unfolded ON audit_events (account_id, id) WHERE action NOT IN ('pet.changed', 'pet.removed', 'category.added', 'category.renamed', 'session.started', 'session.refused', 'session.ended');

-- The events of one account by action: counts its wrong passwords and sign-ins between two other events, and the categories that it has
-- added in a day.
CREATE INDEX audit_events_by_action ON audit_events (account_id, action, (-id)) WHERE action NOT IN ('pet.changed', 'pet.removed');

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

-- Files that people bring in by the console, kept for an hour in parts. A file without a hash has not arrived completely.
CREATE TABLE uploads (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  size INTEGER NOT NULL DEFAULT 0,
  hash TEXT,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX uploads_by_account ON uploads (account_id, created_at);

CREATE TABLE upload_parts (
  upload_id TEXT NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (upload_id, number)
) STRICT;

-- Facts about the database itself: its environment, and whether it is a copy that was not finished.
CREATE TABLE store_facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The version of the folding of pets.name_folded (search-words.ts).
INSERT INTO store_facts (name, value) VALUES ('name_folding', '1');
