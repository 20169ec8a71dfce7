-- served from 0001

CREATE INDEX audit_age ON audit (created_at);

-- Refused requests of the management API, counted by the hour.
CREATE TABLE audit_refusals (
  -- '': nobody knows whose the token was; the operator's organization sees it.
  organization_id text NOT NULL,
  hour timestamptz NOT NULL,
  -- '': not known.
  account_id text NOT NULL,
  key_id text NOT NULL,
  address text NOT NULL,
  status integer NOT NULL,
  count bigint NOT NULL,
  last_at timestamptz NOT NULL,
  PRIMARY KEY (organization_id, hour, account_id, key_id, address, status)
);
CREATE INDEX audit_refusals_age ON audit_refusals (hour);
