-- served from 0021

-- The account that has made a key; null: the operator, or a key from before this was recorded.
ALTER TABLE api_keys ADD COLUMN created_by_id text;
