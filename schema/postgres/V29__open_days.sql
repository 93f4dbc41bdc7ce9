-- Counters of days that are not closed: a closed day of a subject has one row, of slot -1.
CREATE INDEX visit_day_open ON visit_day (day) WHERE slot >= 0;
