-- served from 0019

-- What the first start has made and nobody was told yet: the only API key, sealed until it was shown.
CREATE TABLE untold_first_start (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  sealed_facts text NOT NULL
);
CREATE TRIGGER untold_first_start_master_key BEFORE INSERT OR UPDATE OF sealed_facts ON untold_first_start
  FOR EACH ROW EXECUTE FUNCTION require_master_key('sealed_facts');
