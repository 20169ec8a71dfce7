-- served from 0011

-- Why a handler did not take what it was sent last.
ALTER TABLE subscriptions ADD COLUMN handler_error jsonb;
