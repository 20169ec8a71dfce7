-- served from 0008

CREATE TABLE tasks (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  parent_id text REFERENCES tasks CHECK (parent_id <> id),
  app_id text REFERENCES apps ON DELETE SET NULL,
  author_id text REFERENCES accounts ON DELETE SET NULL,
  executor_id text REFERENCES accounts ON DELETE SET NULL,
  -- Refers to a state once there is that table.
  state_id text,
  target_id text,
  title text NOT NULL,
  description text,
  kind text NOT NULL,
  status text NOT NULL CHECK (status IN ('created', 'running', 'completed', 'failed', 'canceled')),
  input json,
  output json,
  params json NOT NULL,
  errors json NOT NULL,
  -- What description, input, output, params and errors take as text: a tree has a limit.
  content_bytes integer NOT NULL,
  started_at timestamptz,
  ended_at timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CHECK ((started_at IS NULL) = (status = 'created')),
  CHECK ((ended_at IS NULL) = (status IN ('created', 'running')))
);
CREATE INDEX tasks_organization ON tasks (organization_id, created_at, id);
CREATE INDEX tasks_parent ON tasks (parent_id, created_at, id);
CREATE INDEX tasks_app ON tasks (app_id);
CREATE INDEX tasks_author ON tasks (author_id);
CREATE INDEX tasks_executor ON tasks (executor_id);
CREATE INDEX tasks_state ON tasks (state_id);
