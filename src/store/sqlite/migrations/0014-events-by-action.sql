-- compatible from 1

-- The events of one account by action: counts its wrong passwords and sign-ins between two other events, and the categories that it has
-- added in a day.
CREATE INDEX audit_events_by_action ON audit_events (account_id, action, (-id)) WHERE action NOT IN ('pet.changed', 'pet.removed');
