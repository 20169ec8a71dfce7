-- served from 0001

-- Limits that are not the gateway's own.
CREATE TABLE organization_limits (
  organization_id text PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
  topic_bytes bigint NOT NULL
);
-- Null until a gateway that knows limits has seen what each organization holds.
ALTER TABLE cluster ADD COLUMN limited_since timestamptz;
