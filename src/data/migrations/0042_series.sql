-- served from 0036
-- Counts of the event path, by the minute and by the hour. Earlier versions count nothing here.

-- Names of the series. A series is a channel (without a type) or a type of a channel. Not deleted with its app, so that past counts stay.
CREATE TABLE series (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations ON DELETE CASCADE,
  app_id text NOT NULL,
  channel text NOT NULL,
  -- Empty for counts that have no type, such as those of rejected requests.
  type text NOT NULL,
  -- Last time when a gateway looked up the series for writing, at most an hour before its last count.
  last_at timestamptz NOT NULL,
  CONSTRAINT series_name UNIQUE (organization_id, app_id, channel, type)
);
CREATE INDEX series_age ON series (last_at);

-- Without foreign keys, so that the deletion of an organization need not delete millions of rows. Rows without a series expire.
CREATE TABLE series_minutes (
  series_id integer NOT NULL,
  metric text COLLATE "C" NOT NULL,
  minute timestamptz NOT NULL,
  -- The reason of quarantined items, or the status of rejected requests, otherwise empty.
  detail text COLLATE "C" NOT NULL,
  count bigint NOT NULL,
  -- Counts of response times by bucket. Null for other metrics.
  buckets integer[],
  PRIMARY KEY (series_id, metric, minute, detail)
) WITH (fillfactor = 80);
CREATE INDEX series_minutes_age ON series_minutes (minute);

CREATE TABLE series_hours (
  series_id integer NOT NULL,
  metric text COLLATE "C" NOT NULL,
  hour timestamptz NOT NULL,
  detail text COLLATE "C" NOT NULL,
  count bigint NOT NULL,
  buckets integer[],
  PRIMARY KEY (series_id, metric, hour, detail)
);
CREATE INDEX series_hours_age ON series_hours (hour);

-- The last write of each gateway process, so that a repeated write adds nothing.
CREATE TABLE series_writes (
  writer text PRIMARY KEY,
  sequence bigint NOT NULL,
  written_at timestamptz NOT NULL
);

-- Adds the elements of two arrays. Missing elements count as 0. Null if an array is null.
CREATE FUNCTION add_buckets(a integer[], b integer[]) RETURNS integer[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (
    SELECT array_agg(coalesce(x, 0) + coalesce(y, 0) ORDER BY n)
    FROM unnest(a, b) WITH ORDINALITY AS pairs (x, y, n)
  );
CREATE AGGREGATE sum_buckets(integer[]) (SFUNC = add_buckets, STYPE = integer[], PARALLEL = SAFE, COMBINEFUNC = add_buckets);
