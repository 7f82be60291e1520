//! Database, catalog, workers and sessions.
