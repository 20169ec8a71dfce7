-- The pause whose deliveries are not all through; null: nothing is kept back. Pauses are numbered by the version that they make.
ALTER TABLE channels ADD COLUMN pause bigint;
CREATE INDEX channels_resumed ON channels (number) WHERE pause IS NOT NULL AND state <> 'paused';

-- An upgrade may remove what its blueprint has made, and nothing else.
ALTER TABLE channels ADD COLUMN from_blueprint boolean NOT NULL DEFAULT false;
UPDATE channels SET from_blueprint = true
FROM apps WHERE apps.id = channels.app_id AND apps.blueprint_id IS NOT NULL;

-- Addresses that a channel had before; the present one is its id.
CREATE TABLE channel_addresses (
  id text PRIMARY KEY,
  channel_number bigint NOT NULL REFERENCES channels ON DELETE CASCADE,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX channel_addresses_channel ON channel_addresses (channel_number);

CREATE TABLE artifacts (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  kind text NOT NULL,
  title text NOT NULL,
  description text,
  blueprint_id text REFERENCES blueprints ON DELETE SET NULL,
  store_id text,
  -- Without a scale: answered as it was given.
  price numeric CHECK (price >= 0),
  currency text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CHECK ((price IS NULL) = (currency IS NULL))
);
CREATE INDEX artifacts_organization ON artifacts (organization_id, created_at, id);
CREATE INDEX artifacts_blueprint ON artifacts (blueprint_id);
