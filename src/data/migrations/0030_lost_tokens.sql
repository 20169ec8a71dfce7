-- served from 0021

-- True from when an issuer is asked until its answer is stored, or that there was none.
ALTER TABLE connection_tokens ADD COLUMN asking boolean NOT NULL DEFAULT false;
-- When an answer was lost that may have held the refresh token which works from then on; null: not since tokens were stored.
ALTER TABLE connection_tokens ADD COLUMN answer_lost_at timestamptz;
-- Why the state is not ok, for the operator: code, message and time.
ALTER TABLE connections ADD COLUMN last_error json;
