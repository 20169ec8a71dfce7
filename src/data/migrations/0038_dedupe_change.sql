-- served from 0036
-- The last change after which a channel may not recognize events that it has received earlier: another rule for ids, or a longer
-- dedupe window. A poll that finds missed events does not publish events from before it.
ALTER TABLE channels
  ADD COLUMN dedupe_changed_at timestamptz,
  -- Seconds for which ids from before the change are still recognized. Null if there was no such change.
  ADD COLUMN dedupe_kept_seconds integer;
