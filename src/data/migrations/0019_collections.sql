-- served from 0008

CREATE TABLE collections (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  description text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX collections_organization ON collections (organization_id, created_at, id);

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
  -- By the ids of the fields, so that a field may get another name; what has no value is not in it.
  values json NOT NULL,
  -- By the clock of the database, to the microsecond: records made one after another stay in that order.
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX collection_records_organization ON collection_records (organization_id);
CREATE INDEX collection_records_collection ON collection_records (collection_id, created_at, id);

-- The values of unique fields.
CREATE TABLE collection_unique_values (
  field_id text NOT NULL REFERENCES collection_fields ON DELETE CASCADE,
  -- SHA-256 of the value as JSON.
  digest bytea NOT NULL,
  record_id text NOT NULL REFERENCES collection_records ON DELETE CASCADE,
  PRIMARY KEY (field_id, digest)
);
CREATE INDEX collection_unique_values_record ON collection_unique_values (record_id);

ALTER TABLE knowledge_bases
  ADD CONSTRAINT knowledge_bases_collection FOREIGN KEY (collection_id) REFERENCES collections;
CREATE INDEX knowledge_bases_collection ON knowledge_bases (collection_id);
