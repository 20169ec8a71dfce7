-- served from 0036
-- Versions of the schemas of event definitions, so that `dataschema` of an event names the schema that its data was validated with.
-- They belong to the topic: a channel that is created again continues its numbers, because the topic may hold earlier events.
CREATE TABLE schema_versions (
  topic text NOT NULL REFERENCES topics ON DELETE CASCADE,
  version integer NOT NULL,
  -- SHA-256 of the schema's text.
  digest bytea NOT NULL,
  schema json NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (topic, version),
  UNIQUE (topic, digest)
);

-- Version of the definition's schema. Null if the definition has no schema, or if an earlier version of Inlet wrote the definition.
ALTER TABLE topics ADD COLUMN schema_version integer;

INSERT INTO schema_versions (topic, version, digest, schema, created_at)
  SELECT t.topic, 1, sha256(convert_to((d.definition -> 'schema')::text, 'UTF8')), d.definition -> 'schema', now()
  FROM topics AS t
  JOIN channels AS c ON c.number = t.channel_number
  CROSS JOIN LATERAL json_array_elements(c.events) AS d (definition)
  WHERE t.retired_at IS NULL AND d.definition ->> 'type' = t.type AND d.definition -> 'schema' IS NOT NULL;
UPDATE topics SET schema_version = 1 WHERE topic IN (SELECT topic FROM schema_versions);
