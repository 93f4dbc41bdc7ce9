#!/bin/sh
# Runs in the Postgres container when its volume is new. `resolver migrate` grants this role what it needs.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$(cat /run/secrets/resolver.password)" \
  --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" << 'SQL'
CREATE ROLE resolver LOGIN PASSWORD :'password';
SQL
