-- served from 0001

-- What access tokens are signed with: random, sealed by the master key; null until a gateway has made it.
ALTER TABLE cluster ADD COLUMN sealed_access_token_key text;
