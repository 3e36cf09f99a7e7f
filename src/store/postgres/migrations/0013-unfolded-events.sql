-- compatible from 1
-- concurrently

-- The events of one account that its security log never folds (security-log.ts), newest first: wrong passwords and sign-ins, however many
-- a stranger causes, are not among them.
CREATE INDEX CONCURRENTLY audit_events_unfolded ON audit_events (account_id, id) WHERE action NOT IN ('pet.changed', 'pet.removed', 'category.added', 'category.renamed', 'session.started', 'session.refused', 'session.ended');
