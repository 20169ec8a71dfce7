-- served from 0025
-- Limits of one organization; null: the default. Programs from before heed `topic_bytes` alone.
ALTER TABLE organization_limits
  ALTER COLUMN topic_bytes DROP NOT NULL,
  ADD COLUMN quarantine_bytes bigint,
  ADD COLUMN hook_requests_per_second bigint,
  ADD COLUMN source_deliveries_per_second bigint,
  ADD COLUMN key_fetches bigint,
  ADD COLUMN body_bytes bigint,
  ADD COLUMN schema_compile_ms_per_minute bigint,
  ADD COLUMN rows_per_resource bigint,
  -- What becomes of an organization that holds too much: its deliveries are refused, or its oldest events go unread.
  ADD COLUMN over_limit text NOT NULL DEFAULT 'refuse' CHECK (over_limit IN ('refuse', 'trim'));
-- The default of bytes on topics by which organizations were last given what they held. Null: by the one of two GiB.
ALTER TABLE cluster ADD COLUMN limited_to_bytes bigint;
