-- served from 0036
CREATE INDEX dead_letters_organization ON dead_letters (organization_id, created_at, id);
