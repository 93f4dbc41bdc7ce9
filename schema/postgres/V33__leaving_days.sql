-- Counters of the transfer that is under way, or comes next.
CREATE INDEX visit_day_leaving ON visit_day (day) WHERE slot = -2;
