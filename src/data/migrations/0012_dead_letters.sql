-- served from 0011

-- What a handler did not take in all its attempts. The event stands here whole: its entry may be gone.
CREATE TABLE dead_letters (
  id text PRIMARY KEY,
  subscription_id text NOT NULL REFERENCES subscriptions ON DELETE CASCADE,
  organization_id text NOT NULL,
  topic text NOT NULL,
  entry_id text NOT NULL,
  type text NOT NULL,
  -- Name, value, name, value …
  fields json NOT NULL,
  attempts json NOT NULL,
  reason text NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX dead_letters_entry ON dead_letters (subscription_id, topic, entry_id);
CREATE INDEX dead_letters_subscription ON dead_letters (subscription_id, created_at, id);
CREATE INDEX dead_letters_age ON dead_letters (created_at);
