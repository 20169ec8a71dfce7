-- served from 0010

-- What is wrong with a subscription that is not paused; each is set and cleared by whoever sees it.
ALTER TABLE subscriptions
  ADD COLUMN retention_at_risk boolean NOT NULL DEFAULT false,
  ADD COLUMN handler_failing boolean NOT NULL DEFAULT false;

-- The secret that a handler's deliveries are signed with.
ALTER TABLE subscriptions ADD COLUMN sealed_handler_secret text;
CREATE TRIGGER subscriptions_master_key BEFORE INSERT OR UPDATE OF sealed_handler_secret ON subscriptions
  FOR EACH ROW WHEN (NEW.sealed_handler_secret IS NOT NULL)
  EXECUTE FUNCTION require_master_key('sealed_handler_secret');
