-- served from 0001

ALTER TABLE organizations
  ADD COLUMN iam_id text,
  ADD COLUMN tenant_id text,
  ADD COLUMN logo_asset_id text;

ALTER TABLE accounts
  -- Who made it sees it, be it a member or not.
  ADD COLUMN organization_id text REFERENCES organizations,
  ADD COLUMN first_name text,
  ADD COLUMN last_name text,
  ADD COLUMN language text,
  ADD COLUMN agent_identifier text,
  ADD COLUMN app_uid text,
  ADD COLUMN platform_identity_id text,
  ADD COLUMN profile_picture_asset_id text;
CREATE INDEX accounts_organization ON accounts (organization_id, created_at, id);

CREATE TABLE roles (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  description text,
  -- Names; a permission has no row of its own.
  permissions text[] NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT roles_name UNIQUE (organization_id, name)
);
CREATE INDEX roles_organization ON roles (organization_id, created_at, id);

CREATE TABLE memberships (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  organization_id text NOT NULL REFERENCES organizations,
  role integer NOT NULL DEFAULT 0,
  role_ids text[] NOT NULL DEFAULT '{}',
  permissions text[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT memberships_account UNIQUE (account_id, organization_id)
);
CREATE INDEX memberships_organization ON memberships (organization_id, created_at, id);
CREATE INDEX memberships_roles ON memberships USING gin (role_ids);

CREATE TABLE groups (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX groups_organization ON groups (organization_id, created_at, id);

CREATE TABLE group_members (
  id text PRIMARY KEY,
  group_id text NOT NULL REFERENCES groups ON DELETE CASCADE,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT group_members_account UNIQUE (group_id, account_id)
);
CREATE INDEX group_members_accounts ON group_members (account_id);

CREATE TABLE identities (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  organization_id text NOT NULL REFERENCES organizations,
  provider text NOT NULL,
  identifier text NOT NULL,
  email text,
  phone text,
  info json,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
-- `org` stands for each organization's own naming; what another provider names is one person everywhere.
CREATE UNIQUE INDEX identities_own ON identities (organization_id, identifier) WHERE provider = 'org';
CREATE UNIQUE INDEX identities_provider ON identities (provider, identifier) WHERE provider <> 'org';
CREATE INDEX identities_organization ON identities (organization_id, created_at, id);
CREATE INDEX identities_account ON identities (account_id);

ALTER TABLE api_keys ADD COLUMN role_ids text[] NOT NULL DEFAULT '{}';
CREATE INDEX api_keys_roles ON api_keys USING gin (role_ids);
CREATE INDEX api_keys_account ON api_keys (account_id);

-- The accounts that were there belong to the organization of their keys.
UPDATE accounts
SET organization_id = (
  SELECT organization_id FROM api_keys WHERE account_id = accounts.id ORDER BY created_at, id LIMIT 1
);
UPDATE accounts
SET organization_id = (SELECT cluster.organization_id FROM cluster WHERE cluster.account_id = accounts.id)
WHERE organization_id IS NULL;
INSERT INTO memberships (id, account_id, organization_id, created_at, updated_at)
SELECT 'mem' || substr(id, 4), id, organization_id, created_at, updated_at
FROM accounts
WHERE organization_id IS NOT NULL;
