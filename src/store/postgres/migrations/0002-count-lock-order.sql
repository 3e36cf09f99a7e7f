-- compatible from 1

-- Two opposite changes of status locked the counts in opposite order, and deadlocked. Now each change locks all counts in
-- one order. That costs no concurrency: of three statuses, any two changes share one. A change that leaves the status as
-- it was locks nothing.
CREATE OR REPLACE FUNCTION pets_count_change() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  counted_until BIGINT;
BEGIN
  IF TG_OP = 'UPDATE' AND old.status = new.status THEN
    RETURN NULL;
  END IF;
  SELECT until_id INTO counted_until FROM pet_counts_progress FOR SHARE;
  IF old.id <= counted_until THEN
    PERFORM 1 FROM pet_counts ORDER BY status FOR NO KEY UPDATE;
    UPDATE pet_counts SET count = count - 1 WHERE status = old.status;
    IF TG_OP = 'UPDATE' THEN
      UPDATE pet_counts SET count = count + 1 WHERE status = new.status;
    END IF;
  END IF;
  RETURN NULL;
END
$$;
