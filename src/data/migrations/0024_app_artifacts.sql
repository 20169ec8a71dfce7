-- served from 0021

-- The artifact that an app was installed from, whose approved version its upgrades take; null: a blueprint itself, or unknown.
ALTER TABLE apps ADD COLUMN artifact_id text REFERENCES artifacts ON DELETE SET NULL;
CREATE INDEX apps_artifact ON apps (artifact_id);
