-- served from 0008
-- Each worker looks for the channels of the kinds that fetch.
CREATE INDEX channels_kind ON channels (kind, number);
-- Those that say how often an event should come are few.
CREATE INDEX channels_expected ON channels (number) WHERE config->>'expectEverySeconds' IS NOT NULL;
