-- compatible from 1

-- The hash of the password that a link replaces. A link whose account has another by now is void: the release before changes passwords, and
-- does not remove links.
ALTER TABLE account_links ADD COLUMN replaces_hash TEXT;
