-- served from 0019

-- Whether a channel that fetches has begun to: then Redis must know where it stands.
ALTER TABLE channels ADD COLUMN has_begun boolean NOT NULL DEFAULT false;
