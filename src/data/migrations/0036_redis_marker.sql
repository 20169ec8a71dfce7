-- served from 0034
-- Redis contains the same marker. If it differs or is missing, Redis has lost data.
ALTER TABLE cluster
  ADD COLUMN redis_marker text,
  -- Time when data loss was last noticed. Null if it never was.
  ADD COLUMN data_lost_at timestamptz;
