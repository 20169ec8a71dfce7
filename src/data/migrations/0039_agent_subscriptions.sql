-- served from 0036
-- Subscriptions of agents, to whose callback URL Inlet sends events (SEP-3415, webhook delivery). They have no `handler`, so that earlier
-- versions send them nothing.
ALTER TABLE subscriptions
  -- Callback URL, arguments, start position and the caller that made the subscription. Null for subscriptions of the API.
  ADD COLUMN agent json,
  -- Hash of the caller, the callback URL, the name of the event type and the arguments.
  ADD COLUMN agent_id text UNIQUE,
  ADD COLUMN agent_principal text,
  ADD COLUMN expires_at timestamptz,
  ADD CONSTRAINT subscriptions_agent CHECK (
    num_nonnulls(agent, agent_id, agent_principal, expires_at) IN (0, 4) AND (agent IS NULL OR handler IS NULL)
  );
CREATE INDEX subscriptions_agent_principal ON subscriptions (agent_principal) WHERE agent_principal IS NOT NULL;

-- Callback URLs that have answered a challenge, so that they need not answer another one for some time.
CREATE TABLE agent_callbacks (
  principal text NOT NULL,
  url_hash bytea NOT NULL,
  confirmed_at timestamptz NOT NULL,
  PRIMARY KEY (principal, url_hash)
);
CREATE INDEX agent_callbacks_confirmed ON agent_callbacks (confirmed_at);
