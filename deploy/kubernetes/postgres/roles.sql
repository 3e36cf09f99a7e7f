-- Run once by the owner of the tables, in its database, before the first migration. The role that serves can't change tables.
CREATE ROLE petstore LOGIN PASSWORD 'PASSWORD';
GRANT USAGE ON SCHEMA public TO petstore;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO petstore;
-- UPDATE lets a start move a sequence forward that is behind, as after a cut-over to a logical replica.
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, UPDATE ON SEQUENCES TO petstore;
