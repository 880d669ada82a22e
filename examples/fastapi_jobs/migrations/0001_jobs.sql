CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  title TEXT NOT NULL,
  state TEXT NOT NULL, -- queued, done, failed
  url TEXT,
  made TEXT NOT NULL -- ISO 8601, UTC
);
