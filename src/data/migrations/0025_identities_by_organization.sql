-- Programs from before this one take an identity for the only one of its name: they must not serve the database.

-- Each organization says for itself who a subject of an issuer is to it.
DROP INDEX identities_provider;
DROP INDEX identities_own;
CREATE UNIQUE INDEX identities_name ON identities (organization_id, provider, identifier);
