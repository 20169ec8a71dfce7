-- served from 0008

-- Stored credentials for other servers.
CREATE TABLE connections (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  kind text NOT NULL,
  config json NOT NULL,
  sealed_secrets text NOT NULL,
  allowed_origins text[] NOT NULL,
  state text NOT NULL CHECK (state IN ('ok', 'needsReauth', 'error')),
  version integer NOT NULL DEFAULT 1,
  last_used_at timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX connections_organization ON connections (organization_id, created_at, id);

-- What the issuer of a connection's tokens has given. The lease is whose turn it is to ask for more; the generation counts what
-- was given, and is what a late holder of the lease is refused by.
CREATE TABLE connection_tokens (
  connection_id text PRIMARY KEY REFERENCES connections ON DELETE CASCADE,
  generation bigint NOT NULL,
  sealed_tokens text,
  -- From when on the access token is renewed before it is used: a while before it expires. Null where that is not known.
  renew_at timestamptz,
  -- The version of the connection whose settings the access token was asked for with.
  connection_version integer NOT NULL,
  lease_holder text,
  lease_expires_at timestamptz,
  -- When the issuer last refused for good.
  refused_at timestamptz
);

-- Authorizations that a person was sent off to give, each until it is used or expires.
CREATE TABLE connection_authorizations (
  -- SHA-256 of the state parameter.
  state_hash bytea PRIMARY KEY,
  connection_id text NOT NULL REFERENCES connections ON DELETE CASCADE,
  connection_version integer NOT NULL,
  account_id text NOT NULL,
  key_id text,
  sealed_verifier text NOT NULL,
  redirect_uri text NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX connection_authorizations_connection ON connection_authorizations (connection_id, created_at);
CREATE INDEX connection_authorizations_expiry ON connection_authorizations (expires_at);

-- Nothing has been written to these columns so far.
ALTER TABLE channels
  ADD CONSTRAINT channels_connection FOREIGN KEY (connection_id) REFERENCES connections;
CREATE INDEX channels_connection ON channels (connection_id) WHERE connection_id IS NOT NULL;
ALTER TABLE subscriptions
  ADD CONSTRAINT subscriptions_connection FOREIGN KEY (connection_id) REFERENCES connections ON DELETE SET NULL;
CREATE INDEX subscriptions_connection ON subscriptions (connection_id) WHERE connection_id IS NOT NULL;

-- What is sealed is sealed under the master key of now: a gateway that has not heard of another one since writes nothing that
-- nobody could open. The argument is the column.
CREATE FUNCTION require_master_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF split_part(to_jsonb(NEW) ->> TG_ARGV[0], '.', 2) <> (SELECT master_key_id FROM cluster) THEN
    RAISE EXCEPTION 'sealed under another master key than that of the database' USING ERRCODE = 'IN001';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER channels_master_key BEFORE INSERT OR UPDATE OF sealed_settings ON channels
  FOR EACH ROW WHEN (NEW.sealed_settings IS NOT NULL)
  EXECUTE FUNCTION require_master_key('sealed_settings');
CREATE TRIGGER idempotency_keys_master_key BEFORE INSERT OR UPDATE OF sealed_answer ON idempotency_keys
  FOR EACH ROW WHEN (NEW.sealed_answer IS NOT NULL)
  EXECUTE FUNCTION require_master_key('sealed_answer');
CREATE TRIGGER connections_master_key BEFORE INSERT OR UPDATE OF sealed_secrets ON connections
  FOR EACH ROW EXECUTE FUNCTION require_master_key('sealed_secrets');
CREATE TRIGGER connection_tokens_master_key BEFORE INSERT OR UPDATE OF sealed_tokens ON connection_tokens
  FOR EACH ROW WHEN (NEW.sealed_tokens IS NOT NULL)
  EXECUTE FUNCTION require_master_key('sealed_tokens');
CREATE TRIGGER connection_authorizations_master_key BEFORE INSERT OR UPDATE OF sealed_verifier
  ON connection_authorizations
  FOR EACH ROW EXECUTE FUNCTION require_master_key('sealed_verifier');
