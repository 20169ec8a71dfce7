-- Schema of a new database. A database with the migrations 1 to 34 of the development versions already has this schema
-- (see `migrate.ts`).
--
-- Never change this file: databases record its checksum. Add a migration with the next number instead.
--
-- Columns that users write as JSON are `json`, not `jsonb`, so that the API returns their fields in the order of the user.

CREATE TABLE organizations (
  id text PRIMARY KEY,
  name text NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  iam_id text,
  tenant_id text,
  logo_asset_id text,
  -- Name of the organization in the declarative configuration. Unlike `name`, the members of the organization cannot change it.
  declared_name text CONSTRAINT organizations_declared_name UNIQUE
);

CREATE TABLE spaces (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX spaces_organization ON spaces (organization_id, created_at, id);

CREATE TABLE accounts (
  id text PRIMARY KEY,
  name text NOT NULL,
  is_service boolean NOT NULL,
  status text NOT NULL CHECK (status IN ('pending', 'active', 'disabled')),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  -- Organization that created the account. It sees the account even if the account is not a member.
  organization_id text REFERENCES organizations,
  first_name text,
  last_name text,
  language text,
  agent_identifier text,
  app_uid text,
  platform_identity_id text,
  profile_picture_asset_id text
);
CREATE INDEX accounts_organization ON accounts (organization_id, created_at, id);

CREATE TABLE cluster (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  master_key_id text NOT NULL,
  master_key_check text NOT NULL,
  sealed_channel_id_key text NOT NULL,
  -- Objects that the first start created. Null before that.
  organization_id text REFERENCES organizations,
  space_id text REFERENCES spaces,
  account_id text REFERENCES accounts,
  created_at timestamptz NOT NULL,
  -- Random key that signs access tokens, sealed under the master key. Null until a gateway has created it.
  sealed_access_token_key text,
  -- Time when topic limits were applied for the first time. Null before that.
  limited_since timestamptz,
  -- True in a database in which earlier versions stored addresses in plain text, until `migrate.ts` has sealed them. False in a new
  -- database.
  plain_addresses boolean NOT NULL DEFAULT true,
  -- Default topic limit in bytes when it was last applied to existing organizations. Null means 2 GiB.
  limited_to_bytes bigint
);

CREATE TABLE api_keys (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  space_id text REFERENCES spaces ON DELETE SET NULL,
  account_id text NOT NULL REFERENCES accounts,
  name text NOT NULL,
  prefix text,
  hash bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
  permissions text[] NOT NULL,
  expires_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  role_ids text[] NOT NULL DEFAULT '{}',
  -- Account that created the key. Null if the operator created it.
  created_by_id text
);
CREATE INDEX api_keys_organization ON api_keys (organization_id, created_at, id);
CREATE INDEX api_keys_roles ON api_keys USING gin (role_ids);
CREATE INDEX api_keys_account ON api_keys (account_id);

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
  updated_at timestamptz NOT NULL,
  -- Why the state is not `ok`, for the operator: code, message and time.
  last_error json
);
CREATE INDEX connections_organization ON connections (organization_id, created_at, id);

-- Tokens of a connection. Only the holder of the lease requests new ones. Each response increments `generation`, so that a holder
-- whose lease has expired cannot overwrite newer tokens.
CREATE TABLE connection_tokens (
  connection_id text PRIMARY KEY REFERENCES connections ON DELETE CASCADE,
  generation bigint NOT NULL,
  sealed_tokens text,
  -- Time from which the access token is renewed before use, shortly before it expires. Null if the expiry is unknown.
  renew_at timestamptz,
  -- Version of the connection whose settings were used to request the access token.
  connection_version integer NOT NULL,
  lease_holder text,
  lease_expires_at timestamptz,
  -- Time when the issuer last rejected a request permanently.
  refused_at timestamptz,
  -- True from the request to the issuer until its response or its failure is stored.
  asking boolean NOT NULL DEFAULT false,
  -- Time when a response was lost that may have contained a new refresh token. Null if none was lost since tokens were stored.
  answer_lost_at timestamptz
);

-- Authorizations that a person was asked to grant. A row stays until it is used or expires.
CREATE TABLE connection_authorizations (
  -- SHA-256 of the `state` parameter.
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

CREATE TABLE blueprints (
  id text PRIMARY KEY,
  uid text NOT NULL,
  title text NOT NULL,
  description text,
  organization_id text NOT NULL REFERENCES organizations,
  version integer NOT NULL DEFAULT 1,
  channels json NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT blueprints_uid UNIQUE (organization_id, uid)
);
CREATE INDEX blueprints_organization ON blueprints (organization_id, created_at, id);

CREATE TABLE apps (
  id text PRIMARY KEY,
  uid text NOT NULL,
  title text NOT NULL,
  description text,
  blueprint_id text REFERENCES blueprints ON DELETE SET NULL,
  organization_id text NOT NULL REFERENCES organizations,
  project_id text,
  -- Null for the system app.
  space_id text REFERENCES spaces,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  -- Artifact from which the app was installed. Upgrades use its approved version. No reference, because it remains known after the
  -- artifact is deleted. Null if the app was installed from a blueprint, or if the artifact is unknown.
  artifact_id text,
  -- Whether Inlet itself publishes to this app.
  is_system boolean NOT NULL DEFAULT false,
  CONSTRAINT apps_space_or_system CHECK (is_system = (space_id IS NULL))
);
CREATE INDEX apps_organization ON apps (organization_id, created_at, id);
CREATE INDEX apps_blueprint ON apps (blueprint_id);
CREATE INDEX apps_space ON apps (space_id);
CREATE UNIQUE INDEX apps_system ON apps (organization_id) WHERE is_system;

CREATE TABLE channels (
  number bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  -- Address in plain text, as versions before migration 32 stored it. Null in a new database.
  id text UNIQUE,
  app_id text NOT NULL REFERENCES apps,
  organization_id text NOT NULL REFERENCES organizations,
  uid text NOT NULL,
  kind text NOT NULL,
  title text,
  config json NOT NULL,
  sealed_settings text,
  events json NOT NULL,
  connection_id text CONSTRAINT channels_connection REFERENCES connections,
  state text NOT NULL
    CHECK (state IN ('active', 'paused', 'needsSetup', 'needsConnection', 'needsReauth', 'error')),
  version integer NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  -- Number of the pause whose buffered deliveries are not yet processed. It is the version that the pause created. Null when there
  -- is none.
  pause bigint,
  -- Whether the blueprint of the app defines the channel. An upgrade may remove only these channels.
  from_blueprint boolean NOT NULL DEFAULT false,
  -- Whether the source of a pull channel has ever run. If so, Redis must have its cursor.
  has_begun boolean NOT NULL DEFAULT false,
  -- The address is a credential. Its keyed hash finds the channel, and the sealed text shows it.
  address_hash bytea UNIQUE,
  sealed_address text,
  -- Whether the channel belongs to the system app. Such a channel accepts no deliveries.
  is_system boolean NOT NULL DEFAULT false,
  CONSTRAINT channels_uid UNIQUE (app_id, uid)
);
CREATE INDEX channels_resumed ON channels (number) WHERE pause IS NOT NULL AND state <> 'paused';
CREATE INDEX channels_connection ON channels (connection_id) WHERE connection_id IS NOT NULL;
-- For workers, which list the pull channels.
CREATE INDEX channels_kind ON channels (kind, number);
-- Few channels set this.
CREATE INDEX channels_expected ON channels (number) WHERE config->>'expectEverySeconds' IS NOT NULL;

-- Former addresses of channels. The current one is in `channels`.
CREATE TABLE channel_addresses (
  -- Address in plain text, as versions before migration 32 stored it. Null in a new database.
  id text CONSTRAINT channel_addresses_id UNIQUE,
  channel_number bigint NOT NULL REFERENCES channels ON DELETE CASCADE,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  address_hash bytea UNIQUE
);
CREATE INDEX channel_addresses_channel ON channel_addresses (channel_number);

-- No references to the channel or the app: a row stays until its stream is empty.
CREATE TABLE topics (
  topic text PRIMARY KEY,
  organization_id text NOT NULL,
  app_id text NOT NULL,
  channel_number bigint NOT NULL,
  channel_uid text NOT NULL,
  type text NOT NULL,
  max_age_seconds integer NOT NULL,
  max_entries integer NOT NULL,
  max_bytes bigint NOT NULL,
  created_at timestamptz NOT NULL,
  retired_at timestamptz
);
CREATE INDEX topics_app ON topics (app_id, channel_uid);
CREATE INDEX topics_channel ON topics (channel_number);

CREATE TABLE subscriptions (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  app_id text NOT NULL REFERENCES apps,
  event_uid text NOT NULL,
  connection_id text CONSTRAINT subscriptions_connection REFERENCES connections ON DELETE SET NULL,
  state text NOT NULL CHECK (state IN ('active', 'paused', 'failing')),
  start_at text NOT NULL,
  start_ms bigint NOT NULL,
  handler json,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  -- Reasons why an active subscription is failing. The part of the program that detects a problem sets and clears its column.
  retention_at_risk boolean NOT NULL DEFAULT false,
  handler_failing boolean NOT NULL DEFAULT false,
  -- Secret that signs the deliveries to the handler.
  sealed_handler_secret text,
  -- Why the last delivery to the handler failed.
  handler_error jsonb
);
CREATE INDEX subscriptions_app ON subscriptions (app_id, created_at, id);
CREATE INDEX subscriptions_connection ON subscriptions (connection_id) WHERE connection_id IS NOT NULL;

-- The change feed. Rows are ordered by `xid`, because a snapshot sees all rows of committed transactions below a certain `xid`.
-- Values of `id` are assigned before the commit, so they do not have this property.
CREATE TABLE changes (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  kind text NOT NULL,
  key text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX changes_xid ON changes (xid);

CREATE TABLE changes_pruned (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  xid xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO changes_pruned DEFAULT VALUES;

CREATE TABLE removals (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  removal json NOT NULL,
  created_at timestamptz NOT NULL
);

-- Tasks that one gateway at a time may run. A lease expires, so that another gateway can continue after a crash.
CREATE TABLE leases (
  name text PRIMARY KEY,
  holder text NOT NULL,
  expires_at timestamptz NOT NULL
);

CREATE TABLE roles (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  description text,
  -- Names. Permissions have no table.
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
CREATE INDEX identities_organization ON identities (organization_id, created_at, id);
CREATE INDEX identities_account ON identities (account_id);
CREATE UNIQUE INDEX identities_name ON identities (organization_id, provider, identifier);

CREATE TABLE stores (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  description text,
  logo text,
  banner text,
  privacy_policy_url text,
  terms_url text,
  allow_submissions boolean NOT NULL,
  is_public boolean NOT NULL,
  require_approval boolean NOT NULL,
  commission_rate numeric NOT NULL CHECK (commission_rate BETWEEN 0 AND 100 AND scale(commission_rate) <= 4),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX stores_organization ON stores (organization_id, created_at, id);
CREATE INDEX stores_public ON stores (created_at, id) WHERE is_public;

CREATE TABLE store_categories (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  store_id text NOT NULL REFERENCES stores ON DELETE CASCADE,
  name text NOT NULL,
  description text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT store_categories_name UNIQUE (store_id, name),
  -- For the foreign key of `artifacts`, which requires a category of the same store.
  UNIQUE (id, store_id)
);
CREATE INDEX store_categories_organization ON store_categories (organization_id, created_at, id);
CREATE INDEX store_categories_store ON store_categories (store_id, created_at, id);

CREATE TABLE artifacts (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  kind text NOT NULL,
  title text NOT NULL,
  description text,
  blueprint_id text REFERENCES blueprints ON DELETE SET NULL,
  -- `store_id`, `price` and `currency` are no longer read: `offered_in` and the pricing plans replace them.
  store_id text,
  price numeric CHECK (price >= 0),
  currency text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  offered_in text REFERENCES stores,
  category_id text,
  status text NOT NULL DEFAULT 'draft' CHECK (status IN ('draft', 'pending', 'published', 'rejected')),
  -- Blueprint of the artifact as the store approved it. Installs and upgrades use it, even if the blueprint has changed since.
  approved json,
  CHECK ((price IS NULL) = (currency IS NULL)),
  CONSTRAINT artifacts_category FOREIGN KEY (category_id, offered_in) REFERENCES store_categories (id, store_id),
  CHECK (category_id IS NULL OR offered_in IS NOT NULL),
  CHECK ((status = 'draft') = (offered_in IS NULL))
);
CREATE INDEX artifacts_organization ON artifacts (organization_id, created_at, id);
CREATE INDEX artifacts_blueprint ON artifacts (blueprint_id);
CREATE INDEX artifacts_store ON artifacts (offered_in, created_at, id);
CREATE INDEX artifacts_store_category ON artifacts (category_id, created_at, id);

-- The audit log: each change, and the account that made it. It has no references, because a row outlives the objects that it names.
CREATE TABLE audit (
  id text PRIMARY KEY,
  organization_id text NOT NULL,
  -- Null for a change by the declarative configuration.
  account_id text,
  key_id text,
  request_id text,
  action text NOT NULL,
  entity text NOT NULL,
  entity_id text NOT NULL,
  -- Names of the changed fields, never values.
  fields text[] NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX audit_organization ON audit (organization_id, created_at, id);
CREATE INDEX audit_entity ON audit (organization_id, entity, entity_id, created_at, id);
CREATE INDEX audit_account ON audit (organization_id, account_id, created_at, id);
CREATE INDEX audit_age ON audit (created_at);

-- Responses to creating requests, by idempotency key. They may contain credentials, so they are sealed.
CREATE TABLE idempotency_keys (
  organization_id text NOT NULL REFERENCES organizations ON DELETE CASCADE,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  key text NOT NULL,
  -- SHA-256 of the request.
  request bytea NOT NULL,
  -- Null while the first request is in flight, or if its result is unknown.
  sealed_answer text,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (organization_id, account_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- Events that a handler accepted in none of the attempts. The whole event is stored, because its entry may be trimmed.
CREATE TABLE dead_letters (
  id text PRIMARY KEY,
  subscription_id text NOT NULL REFERENCES subscriptions ON DELETE CASCADE,
  organization_id text NOT NULL,
  topic text NOT NULL,
  entry_id text NOT NULL,
  type text NOT NULL,
  -- Alternating names and values.
  fields json NOT NULL,
  attempts json NOT NULL,
  reason text NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX dead_letters_entry ON dead_letters (subscription_id, topic, entry_id);
CREATE INDEX dead_letters_subscription ON dead_letters (subscription_id, created_at, id);
CREATE INDEX dead_letters_age ON dead_letters (created_at);
CREATE INDEX dead_letters_event ON dead_letters (topic, entry_id);

CREATE TABLE collections (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  description text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX collections_organization ON collections (organization_id, created_at, id);

CREATE TABLE knowledge_bases (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  description text,
  asset_id text,
  collection_id text CONSTRAINT knowledge_bases_collection REFERENCES collections,
  owner_id text REFERENCES accounts ON DELETE SET NULL,
  post_id text,
  space_id text REFERENCES spaces ON DELETE SET NULL,
  last_indexed_at timestamptz,
  metadata json NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX knowledge_bases_organization ON knowledge_bases (organization_id, created_at, id);
CREATE INDEX knowledge_bases_owner ON knowledge_bases (owner_id);
CREATE INDEX knowledge_bases_space ON knowledge_bases (space_id);
CREATE INDEX knowledge_bases_collection ON knowledge_bases (collection_id);

CREATE TABLE agents (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  uid text NOT NULL,
  -- Participants refer to an agent by this text.
  identifier text,
  name text NOT NULL,
  description text,
  color text,
  base_model text,
  llm_prompt text,
  blueprint_id text REFERENCES blueprints ON DELETE SET NULL,
  space_id text REFERENCES spaces ON DELETE SET NULL,
  service_account_id text REFERENCES accounts ON DELETE SET NULL,
  custom_avatar_id text,
  avatar_public_url text,
  knowledge_base_id text REFERENCES knowledge_bases,
  query_suggestions json NOT NULL,
  tool_ids text[] NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT agents_uid UNIQUE (organization_id, uid),
  CONSTRAINT agents_identifier UNIQUE (organization_id, identifier)
);
CREATE INDEX agents_organization ON agents (organization_id, created_at, id);
CREATE INDEX agents_blueprint ON agents (blueprint_id);
CREATE INDEX agents_space ON agents (space_id);
CREATE INDEX agents_service_account ON agents (service_account_id);
CREATE INDEX agents_knowledge_base ON agents (knowledge_base_id);

CREATE TABLE rooms (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  title text,
  description text,
  hash text,
  owner_id text REFERENCES accounts ON DELETE SET NULL,
  space_id text REFERENCES spaces ON DELETE SET NULL,
  allow_guest_conversations boolean NOT NULL,
  allow_messages boolean NOT NULL,
  immutable boolean NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX rooms_organization ON rooms (organization_id, created_at, id);
CREATE INDEX rooms_owner ON rooms (owner_id);
CREATE INDEX rooms_space ON rooms (space_id);

CREATE TABLE conversations (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  room_id text NOT NULL REFERENCES rooms,
  author_id text REFERENCES accounts ON DELETE SET NULL,
  owner_id text REFERENCES accounts ON DELETE SET NULL,
  space_id text REFERENCES spaces ON DELETE SET NULL,
  title text,
  is_live boolean NOT NULL,
  -- SHA-256 of the token. Null after the end.
  live_token_hash bytea UNIQUE CHECK (length(live_token_hash) = 32),
  -- Null until the conversation ends.
  ended_at timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CHECK (is_live = (live_token_hash IS NOT NULL)),
  CHECK (NOT is_live OR ended_at IS NULL)
);
CREATE INDEX conversations_organization ON conversations (organization_id, created_at, id);
CREATE INDEX conversations_room ON conversations (room_id, created_at, id);
CREATE INDEX conversations_author ON conversations (author_id);
CREATE INDEX conversations_owner ON conversations (owner_id);
CREATE INDEX conversations_space ON conversations (space_id);

CREATE TABLE participants (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  room_id text NOT NULL REFERENCES rooms ON DELETE CASCADE,
  -- Null for a participant of the room itself.
  conversation_id text REFERENCES conversations ON DELETE CASCADE,
  account_id text REFERENCES accounts ON DELETE CASCADE,
  agent_identifier text,
  first_name text,
  last_name text,
  auto_join boolean NOT NULL,
  is_admin boolean NOT NULL,
  is_agent boolean NOT NULL,
  scope json,
  status json,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX participants_room ON participants (room_id, created_at, id) WHERE conversation_id IS NULL;
CREATE INDEX participants_conversation ON participants (conversation_id, created_at, id);
CREATE INDEX participants_account ON participants (account_id);
-- An account can participate only once.
CREATE UNIQUE INDEX participants_room_account ON participants (room_id, account_id) WHERE conversation_id IS NULL;
CREATE UNIQUE INDEX participants_conversation_account ON participants (conversation_id, account_id);

CREATE TABLE messages (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  room_id text NOT NULL REFERENCES rooms ON DELETE CASCADE,
  -- Null for a message in the room itself.
  conversation_id text REFERENCES conversations ON DELETE CASCADE,
  -- Null if the author used the live token of the conversation, or if the account was deleted.
  author_id text REFERENCES accounts ON DELETE SET NULL,
  content text NOT NULL,
  ai_role integer,
  -- Bytes in Base64.
  attachments json NOT NULL,
  -- Clock of the database, in microseconds, so that successive messages keep their order.
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX messages_room ON messages (room_id, created_at, id);
CREATE INDEX messages_conversation ON messages (conversation_id, created_at, id);
CREATE INDEX messages_author ON messages (author_id);

CREATE TABLE states (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  description text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX states_organization ON states (organization_id, created_at, id);

CREATE TABLE tasks (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  parent_id text REFERENCES tasks CHECK (parent_id <> id),
  app_id text REFERENCES apps ON DELETE SET NULL,
  author_id text REFERENCES accounts ON DELETE SET NULL,
  executor_id text REFERENCES accounts ON DELETE SET NULL,
  state_id text CONSTRAINT tasks_state REFERENCES states ON DELETE SET NULL,
  target_id text,
  title text NOT NULL,
  description text,
  kind text NOT NULL,
  status text NOT NULL CHECK (status IN ('created', 'running', 'completed', 'failed', 'canceled')),
  input json,
  output json,
  params json NOT NULL,
  errors json NOT NULL,
  -- Bytes of description, input, output, params and errors as text. A tree of tasks has a limit.
  content_bytes integer NOT NULL,
  started_at timestamptz,
  ended_at timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CHECK ((started_at IS NULL) = (status = 'created')),
  CHECK ((ended_at IS NULL) = (status IN ('created', 'running')))
);
CREATE INDEX tasks_organization ON tasks (organization_id, created_at, id);
CREATE INDEX tasks_parent ON tasks (parent_id, created_at, id);
CREATE INDEX tasks_app ON tasks (app_id);
CREATE INDEX tasks_author ON tasks (author_id);
CREATE INDEX tasks_executor ON tasks (executor_id);
CREATE INDEX tasks_state ON tasks (state_id);

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
  -- Organization that registered the number. No other organization sees it, whether it is assigned or not.
  organization_id text NOT NULL REFERENCES organizations,
  -- False if the number is unused. The API then returns it without an organization.
  assigned boolean NOT NULL,
  trunk_id text NOT NULL REFERENCES sip_trunks,
  channel_id text,
  country_code text NOT NULL,
  -- Unique across organizations.
  e164 text NOT NULL CONSTRAINT phone_numbers_e164 UNIQUE,
  status text NOT NULL CHECK (status IN ('pending_activation', 'active', 'suspended')),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CHECK (assigned OR (channel_id IS NULL AND status = 'pending_activation'))
);
CREATE INDEX phone_numbers_organization ON phone_numbers (organization_id, created_at, id);
CREATE INDEX phone_numbers_trunk ON phone_numbers (trunk_id);

CREATE TABLE variables (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  state_id text NOT NULL REFERENCES states ON DELETE CASCADE,
  name text NOT NULL,
  scope_id text,
  group_ids text[] NOT NULL,
  tags text[] NOT NULL,
  schema json,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
-- Names must also be unique among variables without a scope.
CREATE UNIQUE INDEX variables_name ON variables (state_id, name) WHERE scope_id IS NULL;
CREATE UNIQUE INDEX variables_scoped_name ON variables (state_id, scope_id, name);
CREATE INDEX variables_state ON variables (state_id, created_at, id);

CREATE TABLE forms (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  uid text NOT NULL,
  title text NOT NULL,
  description text,
  blueprint_id text REFERENCES blueprints ON DELETE SET NULL,
  -- Form of which this row is a version.
  version_parent_id text REFERENCES forms,
  -- No references, because the authors remain known after their accounts are deleted.
  created_by_id text NOT NULL,
  updated_by_id text NOT NULL,
  version integer NOT NULL DEFAULT 1,
  content json NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
-- Versions share the uid of their form.
CREATE UNIQUE INDEX forms_uid ON forms (organization_id, uid) WHERE version_parent_id IS NULL;
CREATE INDEX forms_organization ON forms (organization_id, created_at, id);
CREATE INDEX forms_blueprint ON forms (blueprint_id);
CREATE INDEX forms_version_parent ON forms (version_parent_id, created_at, id);

CREATE TABLE pricing_plans (
  id text PRIMARY KEY,
  -- Organization of the artifact.
  organization_id text NOT NULL REFERENCES organizations,
  artifact_id text NOT NULL REFERENCES artifacts ON DELETE CASCADE,
  name text NOT NULL,
  -- Amounts have no fixed scale, so that the API returns them as they were written.
  price numeric NOT NULL CHECK (price >= 0),
  currency text NOT NULL,
  interval text CHECK (interval IN ('month', 'year')),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT pricing_plans_name UNIQUE (artifact_id, name),
  -- For the foreign key of `store_orders`, which requires a plan of the same artifact.
  UNIQUE (id, artifact_id)
);
CREATE INDEX pricing_plans_organization ON pricing_plans (organization_id);
CREATE INDEX pricing_plans_artifact ON pricing_plans (artifact_id, created_at, id);

CREATE TABLE store_orders (
  id text PRIMARY KEY,
  -- Organization of the buyer.
  organization_id text NOT NULL REFERENCES organizations,
  store_organization_id text NOT NULL REFERENCES organizations,
  order_number text NOT NULL UNIQUE,
  artifact_id text NOT NULL REFERENCES artifacts,
  store_id text NOT NULL REFERENCES stores,
  pricing_plan_id text NOT NULL,
  -- No reference, because the buyer remains known after the account is deleted.
  buyer_id text NOT NULL,
  transaction_id text,
  license_key text UNIQUE,
  payment_method text,
  currency text NOT NULL,
  -- Copied from the plan, which may change later.
  interval text CHECK (interval IN ('month', 'year')),
  subtotal numeric NOT NULL CHECK (subtotal >= 0),
  tax numeric NOT NULL CHECK (tax >= 0),
  total numeric NOT NULL CHECK (total = subtotal + tax),
  commission numeric NOT NULL CHECK (commission BETWEEN 0 AND subtotal),
  status text NOT NULL CHECK (status IN ('pending', 'paid', 'refunded', 'expired', 'canceled')),
  paid_at timestamptz,
  expires_at timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  FOREIGN KEY (pricing_plan_id, artifact_id) REFERENCES pricing_plans (id, artifact_id),
  CHECK ((license_key IS NULL) = (paid_at IS NULL)),
  CHECK (status <> 'pending' OR paid_at IS NULL),
  CHECK (status NOT IN ('paid', 'refunded') OR paid_at IS NOT NULL)
);
CREATE INDEX store_orders_organization ON store_orders (organization_id, created_at, id);
CREATE INDEX store_orders_store_organization ON store_orders (store_organization_id, created_at, id);
CREATE INDEX store_orders_store ON store_orders (store_id, created_at, id);
CREATE INDEX store_orders_artifact ON store_orders (artifact_id, organization_id, status);
CREATE INDEX store_orders_pricing_plan ON store_orders (pricing_plan_id, artifact_id);

CREATE TABLE store_reviews (
  id text PRIMARY KEY,
  -- Organization of the reviewer.
  organization_id text NOT NULL REFERENCES organizations ON DELETE CASCADE,
  artifact_id text NOT NULL REFERENCES artifacts ON DELETE CASCADE,
  store_id text NOT NULL REFERENCES stores,
  -- No reference, because the reviewer remains known after the account is deleted.
  reviewer_id text NOT NULL,
  title text,
  content text,
  rating integer NOT NULL CHECK (rating BETWEEN 1 AND 5),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT store_reviews_reviewer UNIQUE (artifact_id, reviewer_id)
);
CREATE INDEX store_reviews_organization ON store_reviews (organization_id, created_at, id);
CREATE INDEX store_reviews_artifact ON store_reviews (artifact_id, created_at, id);
CREATE INDEX store_reviews_store ON store_reviews (store_id, created_at, id);

CREATE TABLE collection_fields (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  collection_id text NOT NULL REFERENCES collections ON DELETE CASCADE,
  name text NOT NULL,
  description text,
  kind text NOT NULL,
  options text[] NOT NULL,
  required boolean NOT NULL,
  is_unique boolean NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT collection_fields_name UNIQUE (collection_id, name)
);
CREATE INDEX collection_fields_organization ON collection_fields (organization_id);
CREATE INDEX collection_fields_collection ON collection_fields (collection_id, created_at, id);

CREATE TABLE collection_records (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  collection_id text NOT NULL REFERENCES collections ON DELETE CASCADE,
  -- Keyed by field id, so that fields can be renamed. Fields without a value are missing.
  values json NOT NULL,
  -- Clock of the database, in microseconds, so that successive records keep their order.
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX collection_records_organization ON collection_records (organization_id);
CREATE INDEX collection_records_collection ON collection_records (collection_id, created_at, id);

-- Values of unique fields.
CREATE TABLE collection_unique_values (
  field_id text NOT NULL REFERENCES collection_fields ON DELETE CASCADE,
  -- SHA-256 of the value as JSON.
  digest bytea NOT NULL,
  record_id text NOT NULL REFERENCES collection_records ON DELETE CASCADE,
  PRIMARY KEY (field_id, digest)
);
CREATE INDEX collection_unique_values_record ON collection_unique_values (record_id);

-- Result of the first start until it has been reported. It contains the only API key, so it is sealed.
CREATE TABLE untold_first_start (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  sealed_facts text NOT NULL
);

-- Rejected requests of the management API, counted per hour.
CREATE TABLE audit_refusals (
  -- Empty if the owner of the token is unknown. The operator's organization sees these rows.
  organization_id text NOT NULL,
  hour timestamptz NOT NULL,
  -- Empty if unknown.
  account_id text NOT NULL,
  key_id text NOT NULL,
  address text NOT NULL,
  status integer NOT NULL,
  count bigint NOT NULL,
  last_at timestamptz NOT NULL,
  PRIMARY KEY (organization_id, hour, account_id, key_id, address, status)
);
CREATE INDEX audit_refusals_age ON audit_refusals (hour);

-- Events that were deleted for privacy. Copies in flight to a handler are neither sent nor stored.
CREATE TABLE deleted_events (
  topic text NOT NULL,
  entry_id text NOT NULL,
  organization_id text NOT NULL,
  deleted_at timestamptz NOT NULL,
  PRIMARY KEY (topic, entry_id)
);
CREATE INDEX deleted_events_age ON deleted_events (deleted_at);

-- Limits of one organization. Null means the default of the gateway.
CREATE TABLE organization_limits (
  organization_id text PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
  topic_bytes bigint,
  quarantine_bytes bigint,
  hook_requests_per_second bigint,
  source_deliveries_per_second bigint,
  key_fetches bigint,
  body_bytes bigint,
  schema_compile_ms_per_minute bigint,
  rows_per_resource bigint,
  -- Consequence for an organization above its topic storage limit: reject its deliveries, or trim its oldest events.
  over_limit text NOT NULL DEFAULT 'refuse' CHECK (over_limit IN ('refuse', 'trim'))
);

-- Cache of compiled schemas, so that a start does not compile all of them. Any row may be deleted.
CREATE TABLE schema_code (
  -- SHA-256 of the canonical text of the schema.
  digest text NOT NULL,
  -- Version of the generator.
  generator text NOT NULL,
  cost double precision NOT NULL,
  pattern_size integer NOT NULL,
  -- Compressed with gzip.
  code bytea NOT NULL,
  bytes integer NOT NULL,
  -- HMAC-SHA256 of the row under a key derived from the master key. Code without a valid MAC is never evaluated.
  mac bytea NOT NULL,
  used_at timestamptz NOT NULL,
  PRIMARY KEY (digest, generator)
);
CREATE INDEX schema_code_age ON schema_code (used_at);

CREATE TABLE problems (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations ON DELETE CASCADE,
  kind text NOT NULL,
  -- Id of a subscription, connection or organization, or the app id and uid of a channel.
  subject text NOT NULL,
  state text NOT NULL CHECK (state IN ('opened', 'acknowledged', 'resolved')),
  severity text NOT NULL,
  -- Names and titles at that time, because the subject may be deleted later.
  about json NOT NULL,
  app_id text,
  message text NOT NULL,
  cure text NOT NULL,
  figures json NOT NULL,
  first_seen_at timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  acknowledged_at timestamptz,
  acknowledged_by text,
  resolved_at timestamptz,
  created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX problems_open ON problems (organization_id, kind, subject) WHERE state <> 'resolved';
CREATE INDEX problems_organization ON problems (organization_id, created_at, id);

-- State changes that are not yet published, in order. Written in the transaction of the change.
CREATE TABLE problem_events (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  problem_id text NOT NULL REFERENCES problems ON DELETE CASCADE,
  organization_id text NOT NULL,
  type text NOT NULL,
  data text NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX problem_events_problem ON problem_events (problem_id);

-- For each kind of problem, when it was last checked and since when the check fails.
CREATE TABLE problem_looks (
  kind text PRIMARY KEY,
  looked_at timestamptz,
  failing_since timestamptz
);

-- Rejects text that is sealed under another master key than the current one, so that a gateway that missed a rotation writes
-- nothing that cannot be opened later. The argument is the name of the column.
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
CREATE TRIGGER channels_address_master_key BEFORE INSERT OR UPDATE OF sealed_address ON channels
  FOR EACH ROW WHEN (NEW.sealed_address IS NOT NULL)
  EXECUTE FUNCTION require_master_key('sealed_address');
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
CREATE TRIGGER subscriptions_master_key BEFORE INSERT OR UPDATE OF sealed_handler_secret ON subscriptions
  FOR EACH ROW WHEN (NEW.sealed_handler_secret IS NOT NULL)
  EXECUTE FUNCTION require_master_key('sealed_handler_secret');
CREATE TRIGGER untold_first_start_master_key BEFORE INSERT OR UPDATE OF sealed_facts ON untold_first_start
  FOR EACH ROW EXECUTE FUNCTION require_master_key('sealed_facts');

-- The functions and triggers below are for development versions, which run on a database that they have created. They store addresses
-- in plain text while `plain_addresses` is true. After that, versions before migration 32 must reject the database.
CREATE FUNCTION refuse_plain_addresses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE schema_migrations SET served_from = number WHERE name = '0032_channel_addresses.sql';
  RETURN NULL;
END
$$;
CREATE TRIGGER cluster_plain_addresses AFTER INSERT OR UPDATE OF plain_addresses ON cluster
  FOR EACH ROW WHEN (NOT NEW.plain_addresses)
  EXECUTE FUNCTION refuse_plain_addresses();

-- Keeps plain-text addresses out of the tables, even if a gateway has read `plain_addresses` just before it changed.
CREATE FUNCTION keep_address() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.address_hash IS NOT NULL AND NOT (SELECT plain_addresses FROM cluster) THEN
    NEW.id := NULL;
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER channels_plain_insert BEFORE INSERT ON channels
  FOR EACH ROW WHEN (NEW.id IS NOT NULL) EXECUTE FUNCTION keep_address();
CREATE TRIGGER channels_plain_update BEFORE UPDATE OF id ON channels
  FOR EACH ROW WHEN (NEW.id IS NOT NULL) EXECUTE FUNCTION keep_address();
CREATE TRIGGER channel_addresses_plain BEFORE INSERT ON channel_addresses
  FOR EACH ROW WHEN (NEW.id IS NOT NULL) EXECUTE FUNCTION keep_address();

-- Clears the sealed address if a version that knows only `id` replaces the address.
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
