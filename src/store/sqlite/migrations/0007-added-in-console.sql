-- compatible from 1

-- The animals that one account has added in the console: the id of an account is below 'key', that of a key is not. So
-- creates with a key do not write to it.
CREATE INDEX pets_added_in_console ON pets (added_by) WHERE added_by < 'key';
