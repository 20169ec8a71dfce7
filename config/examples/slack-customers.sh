#!/bin/sh
# Receives the events of a Slack app for two customers at one address, and routes each event to the app of its customer.
#
# Save the Signing Secret of your Slack app as signing-secret.txt. Sign in once with `npx inlet-gateway login`.
set -eu

# Each customer's app gets a channel like the one in this blueprint.
npx inlet-gateway blueprints create -f - <<END
{
  "uid": "slack-app", "title": "Slack app",
  "channels": [{
    "uid": "hooks", "kind": "webhook", "config": {"preset": "slack"},
    "events": [
      {"type": "app_mention", "payloadPath": "\$.event"},
      {"type": "message", "payloadPath": "\$.event"}
    ]
  }]
}
END

# Prints the address that you enter at Slack, under Event Subscriptions.
npx inlet-gateway intake set slack-app --secret @signing-secret.txt

# The keys are the ids of the customers' workspaces.
npx inlet-gateway apps install slack-app --uid acme --title Acme
npx inlet-gateway intake keys slack-app acme T061EG9R6
npx inlet-gateway apps install slack-app --uid globex --title Globex
npx inlet-gateway intake keys slack-app globex T0G9PQBBK

# A signed sample from the workspace of Globex, which arrives only in the app of Globex.
npx inlet-gateway send slack-app --intake --secret @signing-secret.txt --route-key T0G9PQBBK
npx inlet-gateway tail --app globex --since 1h --count 1 --timeout 60s
