-- The first day that counters are kept of; 0 if none was ever removed.
ALTER TABLE visit_upkeep ADD COLUMN counts_from INTEGER NOT NULL DEFAULT 0;
-- Counters of closed days, for the removal of old ones.
CREATE INDEX visit_day_closed ON visit_day (day) WHERE slot = -1;
