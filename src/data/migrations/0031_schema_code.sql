-- served from 0001
-- The code that schemas were compiled to, so that a start need not compile all of them. A cache: any row may go.
CREATE TABLE schema_code (
  -- SHA-256 of the schema's canonical text.
  digest text NOT NULL,
  -- Which version of the generator made it.
  generator text NOT NULL,
  cost double precision NOT NULL,
  pattern_size integer NOT NULL,
  -- gzip.
  code bytea NOT NULL,
  bytes integer NOT NULL,
  -- HMAC-SHA256 over all of it, under a key derived from the master key: no other code is evaluated.
  mac bytea NOT NULL,
  used_at timestamptz NOT NULL,
  PRIMARY KEY (digest, generator)
);
CREATE INDEX schema_code_age ON schema_code (used_at);
