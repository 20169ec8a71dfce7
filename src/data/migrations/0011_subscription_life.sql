-- served from 0010

-- What is wrong with a subscription that is not paused; each is set and cleared by whoever sees it.
ALTER TABLE subscriptions
  ADD COLUMN retention_at_risk boolean NOT NULL DEFAULT false,
  ADD COLUMN handler_failing boolean NOT NULL DEFAULT false;
