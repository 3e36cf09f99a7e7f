-- compatible from 1

-- Finds accounts of earlier releases, whose email_folded differs from the address only in case, by an address that looks the same.
CREATE INDEX accounts_beyond_ascii ON accounts (id) WHERE nullif(rtrim(email_folded, '@.+-_0123456789abcdefghijklmnopqrstuvwxyz') = '', FALSE) IS NULL;
