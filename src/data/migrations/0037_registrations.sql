-- served from 0036
-- Registrations of channel addresses at providers. A row is committed before the first request, so that a crash cannot hide a
-- registration that the provider may have stored. It outlives its channel until the provider has removed the registration.
CREATE TABLE registrations (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  app_id text NOT NULL,
  channel_uid text NOT NULL,
  -- Null after the channel was deleted.
  channel_number bigint REFERENCES channels ON DELETE SET NULL,
  -- The registration that takes the place of this one. This one is removed once the other is active.
  replaced_by text REFERENCES registrations ON DELETE SET NULL,
  -- Null if the provider needs no credentials.
  connection_id text CONSTRAINT registrations_connection REFERENCES connections,
  preset text NOT NULL,
  target text NOT NULL,
  params json NOT NULL,
  base_url text,
  state text NOT NULL CHECK (state IN ('creating', 'active', 'renewing', 'lapsed', 'failed', 'removing')),
  -- The provider's id, and values of its responses that later requests need.
  provider_id text,
  kept json NOT NULL DEFAULT '{}',
  -- Address, secret and event types: those that the provider has confirmed, and those of an unfinished request.
  sealed_contents text,
  -- Time of the first request that may have created the registration. Null if none was sent.
  attempted_at timestamptz,
  expires_at timestamptz,
  renew_at timestamptz,
  -- Time of the provider's last handshake, for providers that confirm a registration by one.
  confirmed_at timestamptz,
  checked_at timestamptz,
  lapsed_at timestamptz,
  -- Incremented by each change of the channel, so that a worker notices a change during its requests.
  wanted integer NOT NULL DEFAULT 1,
  -- Time of the next request. A worker holds the lease while it sends requests.
  next_at timestamptz NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  last_error json,
  lease_holder text,
  lease_expires_at timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX registrations_channel ON registrations (channel_number)
  WHERE channel_number IS NOT NULL AND replaced_by IS NULL AND state <> 'removing';
CREATE INDEX registrations_of_channel ON registrations (channel_number) WHERE channel_number IS NOT NULL;
CREATE INDEX registrations_connection ON registrations (connection_id) WHERE connection_id IS NOT NULL;
CREATE INDEX registrations_organization ON registrations (organization_id);
CREATE INDEX registrations_due ON registrations (next_at);
CREATE TRIGGER registrations_master_key BEFORE INSERT OR UPDATE OF sealed_contents ON registrations
  FOR EACH ROW WHEN (NEW.sealed_contents IS NOT NULL)
  EXECUTE FUNCTION require_master_key('sealed_contents');

-- URL of the hooks with which registrations were made. If a gateway has another one, for example as a copy of a production system, it
-- sends no requests until an operator adopts the registrations. Null if there are none yet.
ALTER TABLE cluster ADD COLUMN registered_hooks_url text;
