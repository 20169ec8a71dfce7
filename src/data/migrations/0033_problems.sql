-- served from 0001

-- The app of an organization to which Inlet itself publishes. It is in no space.
ALTER TABLE apps ALTER COLUMN space_id DROP NOT NULL;
ALTER TABLE apps ADD COLUMN is_system boolean NOT NULL DEFAULT false;
ALTER TABLE apps ADD CONSTRAINT apps_space_or_system CHECK (is_system = (space_id IS NULL));
CREATE UNIQUE INDEX apps_system ON apps (organization_id) WHERE is_system;
-- Its channel takes nothing from outside.
ALTER TABLE channels ADD COLUMN is_system boolean NOT NULL DEFAULT false;

CREATE TABLE problems (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations ON DELETE CASCADE,
  kind text NOT NULL,
  -- What it is about: the id of a subscription, connection or organization, or a channel by its app's id and its uid.
  subject text NOT NULL,
  state text NOT NULL CHECK (state IN ('opened', 'acknowledged', 'resolved')),
  severity text NOT NULL,
  -- By name and title as they were: what it is about may be gone.
  about json NOT NULL,
  app_id text,
  message text NOT NULL,
  cure text NOT NULL,
  figures json NOT NULL,
  first_seen_at timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  acknowledged_at timestamptz,
  acknowledged_by text,
  resolved_at timestamptz,
  created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX problems_open ON problems (organization_id, kind, subject) WHERE state <> 'resolved';
CREATE INDEX problems_organization ON problems (organization_id, created_at, id);

-- Changes of state that are still to be published, in their order: written with the change itself.
CREATE TABLE problem_events (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  problem_id text NOT NULL REFERENCES problems ON DELETE CASCADE,
  organization_id text NOT NULL,
  type text NOT NULL,
  data text NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX problem_events_problem ON problem_events (problem_id);

-- When problems of each kind were last looked for, and since when that fails.
CREATE TABLE problem_looks (
  kind text PRIMARY KEY,
  looked_at timestamptz,
  failing_since timestamptz
);
