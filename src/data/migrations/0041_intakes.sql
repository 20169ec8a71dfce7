-- served from 0036
-- Intakes: one address for all installs of a blueprint. An intake is a row of `channels` whose `app_id` is the id of its blueprint. Earlier
-- versions do not know the kind `intake`, so they respond to its deliveries with 503, and the senders retry.
ALTER TABLE channels
  -- How to route items to installs. Null for the channels of apps.
  ADD COLUMN routing json,
  ADD COLUMN owner_app text GENERATED ALWAYS AS (CASE WHEN kind <> 'intake' THEN app_id END) STORED
    REFERENCES apps,
  ADD COLUMN owner_blueprint text GENERATED ALWAYS AS (CASE WHEN kind = 'intake' THEN app_id END) STORED
    REFERENCES blueprints,
  DROP CONSTRAINT channels_app_id_fkey,
  ADD CONSTRAINT channels_routing CHECK ((kind = 'intake') = (routing IS NOT NULL));
CREATE INDEX channels_owner_app ON channels (owner_app);
CREATE INDEX channels_owner_blueprint ON channels (owner_blueprint) WHERE owner_blueprint IS NOT NULL;

-- Settings of the intake as its owner wrote them. Those in `channels` may be older, until a store has approved the blueprint.
ALTER TABLE blueprints ADD COLUMN intake json;

-- The installs that own the route keys of an intake.
CREATE TABLE route_keys (
  blueprint_id text NOT NULL REFERENCES blueprints ON DELETE CASCADE,
  key text NOT NULL,
  app_id text NOT NULL REFERENCES apps ON DELETE CASCADE,
  -- Whether the intake may hold items of the key that must be published before later ones.
  held boolean NOT NULL DEFAULT true,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (blueprint_id, key)
);
CREATE INDEX route_keys_app ON route_keys (app_id);
CREATE INDEX route_keys_held ON route_keys (blueprint_id, key) WHERE held;
