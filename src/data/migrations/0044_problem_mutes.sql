-- served from 0036
ALTER TABLE problems
  ADD COLUMN muted_until timestamptz,
  ADD COLUMN muted_by text,
  ADD COLUMN note text,
  ADD COLUMN noted_by text;
