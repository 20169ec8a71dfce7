-- served from 0008

CREATE TABLE forms (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  uid text NOT NULL,
  title text NOT NULL,
  description text,
  blueprint_id text REFERENCES blueprints ON DELETE SET NULL,
  -- The form that this one is a version of.
  version_parent_id text REFERENCES forms,
  -- No references: who wrote a form stays known when the account is gone.
  created_by_id text NOT NULL,
  updated_by_id text NOT NULL,
  version integer NOT NULL DEFAULT 1,
  content json NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
-- Versions go by the uid of the form that they are of.
CREATE UNIQUE INDEX forms_uid ON forms (organization_id, uid) WHERE version_parent_id IS NULL;
CREATE INDEX forms_organization ON forms (organization_id, created_at, id);
CREATE INDEX forms_blueprint ON forms (blueprint_id);
CREATE INDEX forms_version_parent ON forms (version_parent_id, created_at, id);
