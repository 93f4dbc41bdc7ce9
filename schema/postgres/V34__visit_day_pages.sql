-- Long enough for an autovacuum of the table to give way. Nothing else waits for this lock.
SET LOCAL lock_timeout = '1500ms';
-- Closed counters never change in place, so a third of each page would stay empty for ever. A tenth
-- is enough for those of open days: what their former versions leave is used again.
ALTER TABLE visit_day SET (fillfactor = 90);
