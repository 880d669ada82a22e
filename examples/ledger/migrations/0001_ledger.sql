CREATE TABLE booked (key TEXT PRIMARY KEY);
CREATE TABLE account (balance INTEGER NOT NULL);
INSERT INTO account (balance) VALUES (0);
