-- served from 0005
-- What a declared set-up calls an organization: unlike the name, its own people cannot change it.
ALTER TABLE organizations ADD COLUMN declared_name text CONSTRAINT organizations_declared_name UNIQUE;
