-- served from 0001
-- What one gateway at a time may do. A lease ends by itself, so that a gateway that dies stops nothing for long.
CREATE TABLE leases (
  name text PRIMARY KEY,
  holder text NOT NULL,
  expires_at timestamptz NOT NULL
);
