-- served from 0001

-- Events that were deleted for privacy: a copy that is still on its way to a handler is neither sent nor kept.
CREATE TABLE deleted_events (
  topic text NOT NULL,
  entry_id text NOT NULL,
  organization_id text NOT NULL,
  deleted_at timestamptz NOT NULL,
  PRIMARY KEY (topic, entry_id)
);
CREATE INDEX deleted_events_age ON deleted_events (deleted_at);
CREATE INDEX dead_letters_event ON dead_letters (topic, entry_id);
