-- compatible from 1

-- The changes and removals of animals, newest first, of all accounts and of one.
CREATE INDEX audit_events_of_pets ON audit_events (id) WHERE action IN ('pet.changed', 'pet.removed');

CREATE INDEX audit_events_of_pets_by_account ON audit_events (account_id, id) WHERE action IN ('pet.changed', 'pet.removed');
