-- compatible from 1

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
