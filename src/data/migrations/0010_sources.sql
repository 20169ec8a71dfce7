-- served from 0008
-- Each worker looks for the channels of the kinds that fetch.
CREATE INDEX channels_kind ON channels (kind, number);
