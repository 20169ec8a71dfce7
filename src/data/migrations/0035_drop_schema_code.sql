-- served from 0034
--
-- Versions up to 0034 cached compiled schemas in this table. If it is missing, they compile the schemas again.

DROP TABLE schema_code;
