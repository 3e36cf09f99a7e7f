-- compatible from 1

-- Finds the changes of an animal by its id, which ends the subject: "Rex (42)", its removal included.
-- Creates write no audit event, so none waits for it.
CREATE INDEX audit_events_by_pet ON audit_events ((substr(subject, length(rtrim(subject, '-0123456789)')) + 1)), id)
  WHERE action IN ('pet.changed', 'pet.removed');

DROP INDEX audit_events_by_animal;
