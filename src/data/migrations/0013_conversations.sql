-- served from 0008

CREATE TABLE knowledge_bases (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  description text,
  asset_id text,
  collection_id text,
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

CREATE TABLE agents (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  uid text NOT NULL,
  -- What participants name an agent by.
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
  -- SHA-256 of the token; gone with the end.
  live_token_hash bytea UNIQUE CHECK (length(live_token_hash) = 32),
  -- Null: not yet.
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
  -- Null: of the room itself.
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
-- An account takes part once.
CREATE UNIQUE INDEX participants_room_account ON participants (room_id, account_id) WHERE conversation_id IS NULL;
CREATE UNIQUE INDEX participants_conversation_account ON participants (conversation_id, account_id);

CREATE TABLE messages (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  room_id text NOT NULL REFERENCES rooms ON DELETE CASCADE,
  -- Null: said in the room itself.
  conversation_id text REFERENCES conversations ON DELETE CASCADE,
  -- Null: whoever had the conversation's live token, or an account that is gone.
  author_id text REFERENCES accounts ON DELETE SET NULL,
  content text NOT NULL,
  ai_role integer,
  -- Their bytes in Base64.
  attachments json NOT NULL,
  -- By the clock of the database, to the microsecond: what is said one after another stays in that order.
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX messages_room ON messages (room_id, created_at, id);
CREATE INDEX messages_conversation ON messages (conversation_id, created_at, id);
CREATE INDEX messages_author ON messages (author_id);
