-- The first day that counters are kept of; 0 if none was ever removed.
ALTER TABLE visit_upkeep ADD COLUMN counts_from INTEGER NOT NULL DEFAULT 0;
-- For the removal of old counters.
CREATE INDEX visit_day_closed ON visit_day (day) WHERE slot = -1;
CREATE INDEX visit_month_month ON visit_month (month);
