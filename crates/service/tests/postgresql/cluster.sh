#!/bin/sh
# Runs a PostgreSQL of its own until standard input ends, and takes it away then.
#
# usage: cluster.sh PORT
#
# It listens at 127.0.0.1:PORT, by TLS too, and at a socket in the folder that is printed when it answers; `ca.pem` in
# that folder vouches for its certificate for `localhost`. The role `tacit` needs no password, and `secret` has one by
# TCP. Prints `absent` where PostgreSQL is not installed.
set -eu
for bin in "$(dirname "$(command -v initdb 2>/dev/null || echo /none/initdb)")" /usr/lib/postgresql/*/bin; do
    [ -x "$bin/initdb" ] && [ -x "$bin/postgres" ] && [ -x "$bin/psql" ] && found=$bin
done
if [ -z "${found:-}" ]; then
    echo absent
    exit 0
fi
folder=$(mktemp -d "${TMPDIR:-/tmp}/tacit-postgresql.XXXXXX")
as=
if [ "$(id -u)" = 0 ]; then
    # PostgreSQL does not run as root.
    if ! id postgres >/dev/null 2>&1; then
        rm -rf "$folder"
        echo absent
        exit 0
    fi
    as="setpriv --reuid=postgres --regid=postgres --clear-groups --"
    chown postgres "$folder"
fi
chmod 755 "$folder"
server=
finish() {
    [ -z "$server" ] || { kill -QUIT "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT
cd "$folder"
exec 3>&1 >"$folder/log" 2>&1

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=authority" \
    -keyout authority.key -out ca.pem
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=localhost" -keyout server.key -out server.csr
printf 'subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n' >server.ext
openssl x509 -req -in server.csr -CA ca.pem -CAkey authority.key -CAcreateserial -days 2 -extfile server.ext \
    -out server.pem
chmod 644 ca.pem
chmod 600 server.key
[ -z "$as" ] || chown postgres server.key server.pem

$as "$found/initdb" --auth=trust --username=tacit --encoding=UTF8 --no-locale -D "$folder/data"
printf 'local all all trust\nhost all secret all scram-sha-256\nhost all all all trust\n' >"$folder/data/pg_hba.conf"
$as "$found/postgres" -D "$folder/data" -k "$folder" -p "$1" -c listen_addresses=127.0.0.1 -c max_connections=60 \
    -c ssl=on -c ssl_cert_file="$folder/server.pem" -c ssl_key_file="$folder/server.key" </dev/null 3>&- &
server=$!
tries=0
until "$found/psql" -q -h "$folder" -p "$1" -U tacit -d postgres -c "CREATE ROLE secret LOGIN PASSWORD 'pass#word'"; do
    tries=$((tries + 1))
    [ "$tries" -lt 150 ] && kill -0 "$server"
    sleep 0.2
done
echo "$folder" >&3
exec 3>&-
while read -r _; do :; done
