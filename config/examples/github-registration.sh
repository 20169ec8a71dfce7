#!/bin/sh
# Creates a webhook at GitHub, and keeps it alive: sh github-registration.sh <owner> <repository>
#
# Save a token with the permission "Webhooks: read and write" as token.txt. Sign in once with `npx inlet-gateway login`. GitHub must be able
# to reach the gateway at its INLET_HOOKS_URL. For GitHub Enterprise Server, set GITHUB_API to the address of its API.
set -eu

npx inlet-gateway receive github owner="$1" repo="$2" --token @token.txt --once --yes ${GITHUB_API:+--base-url "$GITHUB_API"}

# Asks GitHub whether the webhook exists. Inlet does this once a day, and creates the webhook again if someone has deleted it.
npx inlet-gateway channels registration github --app github --check
