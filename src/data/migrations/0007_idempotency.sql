-- served from 0001
-- What creating requests were answered, by the key that their client gave them. Answers may hold credentials: they are sealed.
CREATE TABLE idempotency_keys (
  organization_id text NOT NULL REFERENCES organizations ON DELETE CASCADE,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  key text NOT NULL,
  -- SHA-256 of what was asked for.
  request bytea NOT NULL,
  -- Null while the first request is under way, or when nobody knows what became of it.
  sealed_answer text,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (organization_id, account_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
