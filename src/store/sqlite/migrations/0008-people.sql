-- compatible from 1

-- What an account may do in the console: 'manager', 'member', or 'keyless' for a member without the right to keys. The release before
-- creates members.
ALTER TABLE accounts ADD COLUMN role TEXT NOT NULL DEFAULT 'member';

-- The only account manages the store. Nobody can sign in to the account of the first run.
UPDATE accounts SET role = 'manager' WHERE email_folded <> 'first-run@localhost'
  AND (SELECT count(*) FROM accounts WHERE email_folded <> 'first-run@localhost') = 1;

CREATE INDEX accounts_by_age ON accounts (created_at, id);

-- When the person of an account was last seen.
CREATE INDEX audit_events_of_sessions ON audit_events (account_id, id) WHERE action IN ('session.started', 'session.ended');

-- Links that managers pass on, by the SHA-256 of their token. A link is removed when it is used. Without an account it is an
-- invitation, else it sets a new password.
CREATE TABLE account_links (
  hash TEXT PRIMARY KEY,
  account_id TEXT REFERENCES accounts (id) ON DELETE CASCADE,
  made_by TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
