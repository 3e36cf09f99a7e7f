-- compatible from 1

-- audit_events_unfolded and audit_events_by_action have replaced it. Meanwhile the release before reads its log by audit_events_by_account.
DROP INDEX audit_events_of_security;
