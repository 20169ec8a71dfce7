-- served from 0008

CREATE TABLE states (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  description text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX states_organization ON states (organization_id, created_at, id);

CREATE TABLE variables (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  state_id text NOT NULL REFERENCES states ON DELETE CASCADE,
  name text NOT NULL,
  scope_id text,
  group_ids text[] NOT NULL,
  tags text[] NOT NULL,
  schema json,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
-- No scope is a scope as well.
CREATE UNIQUE INDEX variables_name ON variables (state_id, name) WHERE scope_id IS NULL;
CREATE UNIQUE INDEX variables_scoped_name ON variables (state_id, scope_id, name);
CREATE INDEX variables_state ON variables (state_id, created_at, id);

ALTER TABLE tasks ADD CONSTRAINT tasks_state FOREIGN KEY (state_id) REFERENCES states ON DELETE SET NULL;
