-- For the removal of old counters. A BRIN index would be smaller, but new rows take the places of
-- removed ones: its ranges would soon reach from the oldest day to today.
CREATE INDEX visit_day_closed ON visit_day (day) WHERE slot = -1;
CREATE INDEX visit_month_month ON visit_month (month);
