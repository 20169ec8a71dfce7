-- served from 0025
-- A channel's address is a credential: its hash under a key of the cluster finds the channel, and the sealed text shows it.
ALTER TABLE channels ADD COLUMN address_hash bytea UNIQUE, ADD COLUMN sealed_address text;
ALTER TABLE channels ALTER COLUMN id DROP NOT NULL;
CREATE TRIGGER channels_address_master_key BEFORE INSERT OR UPDATE OF sealed_address ON channels
  FOR EACH ROW WHEN (NEW.sealed_address IS NOT NULL)
  EXECUTE FUNCTION require_master_key('sealed_address');

-- An address of before is only looked up.
ALTER TABLE channel_addresses DROP CONSTRAINT channel_addresses_pkey;
ALTER TABLE channel_addresses ADD CONSTRAINT channel_addresses_id UNIQUE (id);
ALTER TABLE channel_addresses ALTER COLUMN id DROP NOT NULL;
ALTER TABLE channel_addresses ADD COLUMN address_hash bytea UNIQUE;

-- True while addresses are also kept as they are, for those programs: in a database from before, until the operator says that
-- none runs any more. From then on none starts.
ALTER TABLE cluster ADD COLUMN plain_addresses boolean NOT NULL DEFAULT true;
CREATE FUNCTION refuse_plain_addresses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE schema_migrations SET served_from = number WHERE name = '0032_channel_addresses.sql';
  RETURN NULL;
END
$$;
CREATE TRIGGER cluster_plain_addresses AFTER INSERT OR UPDATE OF plain_addresses ON cluster
  FOR EACH ROW WHEN (NOT NEW.plain_addresses)
  EXECUTE FUNCTION refuse_plain_addresses();

-- Programs from before this one write the one column that they know; with it the others go that no longer fit. One that has read
-- `plain_addresses` a moment too early leaves nothing behind.
CREATE FUNCTION keep_address() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.address_hash IS NOT NULL AND NOT (SELECT plain_addresses FROM cluster) THEN
    NEW.id := NULL;
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER channel_addresses_plain BEFORE INSERT ON channel_addresses
  FOR EACH ROW WHEN (NEW.id IS NOT NULL) EXECUTE FUNCTION keep_address();
CREATE TRIGGER channels_plain_insert BEFORE INSERT ON channels
  FOR EACH ROW WHEN (NEW.id IS NOT NULL) EXECUTE FUNCTION keep_address();
CREATE FUNCTION replace_address() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.address_hash IS NOT DISTINCT FROM OLD.address_hash THEN
    NEW.address_hash := NULL;
    NEW.sealed_address := NULL;
  END IF;
  RETURN NEW;
END
$$;
-- Triggers fire in the order of their names.
CREATE TRIGGER channels_other_address BEFORE UPDATE OF id ON channels
  FOR EACH ROW WHEN (NEW.id IS NOT NULL AND NEW.id IS DISTINCT FROM OLD.id) EXECUTE FUNCTION replace_address();
CREATE TRIGGER channels_plain_update BEFORE UPDATE OF id ON channels
  FOR EACH ROW WHEN (NEW.id IS NOT NULL) EXECUTE FUNCTION keep_address();

-- Seeing addresses needs a permission of its own from now on: those who could see them can.
UPDATE roles SET permissions = permissions || '{channels.read}'
WHERE permissions && '{apps.read,apps.write}' AND NOT permissions && '{channels.read}';
UPDATE memberships SET permissions = permissions || '{channels.read}'
WHERE permissions && '{apps.read,apps.write}' AND NOT permissions && '{channels.read}';
UPDATE api_keys SET permissions = permissions || '{channels.read}'
WHERE permissions && '{apps.read,apps.write}' AND NOT permissions && '{channels.read}';
