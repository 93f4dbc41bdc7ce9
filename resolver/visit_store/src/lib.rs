//! Where visits are kept: rows, texts and counters, on Postgres, SQLite and ClickHouse.
