#!/bin/sh
# Lays out the folders that compose.yaml mounts, next to this file: keys, settings, owners and modes.
#
#   ./lay_out.sh coordinator HOST                       HOST: name or address that hospitals connect to, at port 9443
#   ./lay_out.sh hospital N NAME RECORDS [INVITATION]   N: 0, 1 or 2 as in compose.yaml; RECORDS: CSV or JSON Lines with
#                                                       text,label; INVITATION: ./invitation.json if not given
#
# It ends with the steps that remain. All of it is done by root of a container without a network, so no root is needed
# here. Variables: ENGINE (docker, or podman), IMAGE (caucus-coordinator, or for a hospital caucus), and a hospital's
# PROXY (none; http://HOST:PORT).
set -eu

image=caucus extras=
[ "${1:-}" != coordinator ] || { image=caucus-coordinator; extras=" --build-arg EXTRAS=[coordinator]"; }
engine=${ENGINE:-docker} image=${IMAGE:-$image} here=$(cd "$(dirname "$0")" && pwd)

fail() { echo "lay_out.sh: $*" >&2; exit 2; }
inside() { "$engine" run --rm --network none --user 0:0 "$@"; }
new() { # a folder that this run makes, and removes again if it fails
    [ ! -e "$here/$1" ] || fail "folder: expected a new one, got one that exists, in $here/$1. Nothing is overwritten"
    mkdir "$here/$1"
    made="${made:-} $1"
}
undo() {
    for folder in ${made:-}; do
        inside --volume "$here/$folder:/folder" "$image" find /folder -mindepth 1 -delete
        rmdir "$here/$folder"
    done
    rm -f "$here"/*.json.part
}
usage() { fail "expected: coordinator HOST, or: hospital N NAME RECORDS [INVITATION]"; }

command -v "$engine" >/dev/null || fail "engine: expected docker or podman, got $engine. Set ENGINE"
"$engine" image inspect "$image" >/dev/null 2>&1 || fail "image: expected $image to be built, got none. \
Run: $engine build -f configs/deployment/Dockerfile -t $image$extras ."
trap undo EXIT

case ${1:-} in
coordinator)
    [ $# -eq 2 ] || usage
    case $2 in *:*|"") fail "HOST: expected a name or address without a port, got '$2'";; esac
    new coordinator
    # 10001 is the account of coordinator and party service, 10002 the relay's (Dockerfile).
    inside --volume "$here/coordinator:/coordinator" "$image" sh -euc '
        said=$(caucus-coordinator init /coordinator --address "$1:9443")
        echo "$said" | grep ^fingerprint >&2
        mkdir /coordinator/models
        cat /coordinator/invitation.json
        chown -R 10001:10001 /coordinator' - "$2" >"$here/invitation.json.part"
    mv "$here/invitation.json.part" "$here/invitation.json"
    cat <<END

What remains, in $here:
  1. keys of language models, if runs use them: ANTHROPIC_API_KEY=... or OPENAI_API_KEY=... in .env (chmod 600)
  2. $engine compose up -d coordinator
  3. send invitation.json to the hospitals; tell them the fingerprint above by telephone
END
    ;;
hospital)
    [ $# -eq 4 ] || [ $# -eq 5 ] || usage
    n=$2 invitation=${5:-$here/invitation.json}
    case $n in ""|*[!0-9]*) fail "N: expected a number, got '$n'";; esac
    for file in "$4" "$invitation"; do
        [ -f "$file" ] || fail "file: expected an existing one, got none, in $file"
    done
    records=$(basename "$4")
    folder_of() { (cd "$(dirname "$1")" && pwd); }
    new "hospital$n"
    new "records$n"
    # The relay owns node/, relay-logs/ and relay.yaml, the few settings that it needs; in run/ both halves make files,
    # for which the service has the relay's group; all else is the service's alone.
    inside --volume "$here/hospital$n:/hospital" --volume "$here/records$n:/records" \
        --volume "$(folder_of "$4")/$records:/given/records:ro" \
        --volume "$(folder_of "$invitation")/$(basename "$invitation"):/given/invitation.json:ro" "$image" sh -euc '
        install -m 600 /given/records "/records/$2"
        said=$(caucus-party init /hospital --name "$1" --records "/records/$2" \
            --invitation /given/invitation.json --relay-user relay ${3:+--proxy "$3"})
        echo "$said" | grep fingerprint >&2
        cd /hospital
        chmod 700 . # until the last step no other account comes in, to put links where files are given away
        mkdir relay-logs models
        grep -E "^(name|records|encoder|coordinator|proxy|bundle):" client.yaml >relay.yaml
        chmod 600 relay.yaml
        chmod 700 relay-logs /records
        chmod 770 run
        cat party.json
        chown -R 10001:10001 ./* /records
        chown -R 10002:10002 node relay-logs relay.yaml
        chown 10001:10002 run
        chown 10001:10001 .' - "$3" "$records" "${PROXY:-}" >"$here/party$n.json.part"
    mv "$here/party$n.json.part" "$here/party$n.json"
    cat <<END

records$n/$records is a copy of $4, readable by the party service alone: with the original do as your rules say.
What remains, in $here; limits and approval are in hospital$n/client.yaml, and a change of the
coordinator's address, the bundle or the proxy is made there and in hospital$n/relay.yaml:
  1. send party$n.json to the coordinator, who runs
       $engine compose exec -T coordinator caucus-coordinator enrol --yes /coordinator /dev/stdin <party$n.json
     and when all are enrolled sends roster.json to all:
       $engine compose exec -T coordinator cat /coordinator/roster.json >roster.json
  2. $engine compose run --rm -T hospital$n-service caucus-party roster /hospital /dev/stdin <roster.json
     shows the hospitals, whose fingerprints you compare by telephone; the same with --yes at its end takes them
  3. $engine compose up -d hospital$n-service hospital$n-relay
  4. for each run: $engine compose exec hospital$n-service caucus-party approve /hospital
END
    ;;
*) usage ;;
esac
made=
