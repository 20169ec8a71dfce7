-- served from 0021

-- The artifact that an app was installed from, whose approved version its upgrades take, be it there any more or not; null: a
-- blueprint itself, or unknown.
ALTER TABLE apps ADD COLUMN artifact_id text;
UPDATE apps SET artifact_id = artifacts.id
FROM artifacts, blueprints
WHERE blueprints.id = apps.blueprint_id AND blueprints.organization_id <> apps.organization_id
  AND artifacts.blueprint_id = apps.blueprint_id
  AND NOT EXISTS (SELECT FROM artifacts AS others WHERE others.blueprint_id = apps.blueprint_id AND others.id <> artifacts.id);
