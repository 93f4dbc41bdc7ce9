//! Visits as values: events, ids, counters, sketches of visitors, pages and series.
