-- served from 0021

-- The blueprint of an artifact as its store has approved it: installs and upgrades take that, whatever becomes of the blueprint.
ALTER TABLE artifacts ADD COLUMN approved json;
UPDATE artifacts
SET approved = json_build_object(
  'version', blueprints.version, 'uid', blueprints.uid, 'title', blueprints.title,
  'description', blueprints.description, 'channels', blueprints.channels
)
FROM blueprints, stores
WHERE blueprints.id = artifacts.blueprint_id AND stores.id = artifacts.offered_in AND artifacts.status = 'published'
  AND stores.require_approval AND stores.organization_id <> artifacts.organization_id;
