-- compatible from 1
-- concurrently

-- The events of one account that are not about animals, newest first: its security log. Creates write no audit event, and a change of an
-- animal none of this index.
CREATE INDEX CONCURRENTLY audit_events_of_security ON audit_events (account_id, id) WHERE action NOT IN ('pet.changed', 'pet.removed');
