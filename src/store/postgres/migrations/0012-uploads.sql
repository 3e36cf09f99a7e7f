-- compatible from 1

-- Files that people bring in by the console, kept for an hour in parts. A file without a hash has not arrived completely.
CREATE TABLE uploads (
  id TEXT COLLATE "C" PRIMARY KEY,
  account_id TEXT COLLATE "C" NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  size BIGINT NOT NULL DEFAULT 0,
  hash TEXT COLLATE "C",
  created_at BIGINT NOT NULL
);

CREATE INDEX uploads_by_account ON uploads (account_id, created_at);

CREATE TABLE upload_parts (
  upload_id TEXT COLLATE "C" NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
  number BIGINT NOT NULL,
  content BYTEA NOT NULL,
  PRIMARY KEY (upload_id, number)
);
