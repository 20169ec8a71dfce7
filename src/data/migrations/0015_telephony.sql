-- served from 0008

CREATE TABLE sip_trunks (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  sip_provider text NOT NULL,
  host text,
  port integer,
  transport text NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX sip_trunks_organization ON sip_trunks (organization_id, created_at, id);

CREATE TABLE phone_numbers (
  id text PRIMARY KEY,
  -- Who has registered it: nobody else ever sees it, be it assigned or not.
  organization_id text NOT NULL REFERENCES organizations,
  -- False: nobody uses it, and it is answered without an organization.
  assigned boolean NOT NULL,
  trunk_id text NOT NULL REFERENCES sip_trunks,
  channel_id text,
  country_code text NOT NULL,
  -- One number is one line, whoever has it.
  e164 text NOT NULL CONSTRAINT phone_numbers_e164 UNIQUE,
  status text NOT NULL CHECK (status IN ('pending_activation', 'active', 'suspended')),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CHECK (assigned OR (channel_id IS NULL AND status = 'pending_activation'))
);
CREATE INDEX phone_numbers_organization ON phone_numbers (organization_id, created_at, id);
CREATE INDEX phone_numbers_trunk ON phone_numbers (trunk_id);
