-- compatible from 1

-- Nothing to change: SQLite has one writer at a time.
