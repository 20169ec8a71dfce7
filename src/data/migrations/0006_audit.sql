-- served from 0001

-- Who changed what. No references: a row outlives what it tells of.
CREATE TABLE audit (
  id text PRIMARY KEY,
  organization_id text NOT NULL,
  -- Null: a declared set-up.
  account_id text,
  key_id text,
  request_id text,
  action text NOT NULL,
  entity text NOT NULL,
  entity_id text NOT NULL,
  -- Names alone, never values.
  fields text[] NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX audit_organization ON audit (organization_id, created_at, id);
CREATE INDEX audit_entity ON audit (organization_id, entity, entity_id, created_at, id);
CREATE INDEX audit_account ON audit (organization_id, account_id, created_at, id);
