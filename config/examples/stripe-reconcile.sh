#!/bin/sh
# Receives the webhooks of a Stripe account, and polls Stripe for events that the webhook missed.
#
# Save the signing secret of the webhook endpoint as webhook-secret.txt, and a restricted API key with the permission "Events: read" as
# api-key.txt. Sign in once with `npx inlet-gateway login`.
set -eu

npx inlet-gateway receive stripe --secret @webhook-secret.txt --once --yes

# Publishes these two types, each on its own topic. Add the types that you need.
npx inlet-gateway channels update stripe --app stripe -f - <<END
{"events": [{"type": "invoice.paid"}, {"type": "checkout.session.completed"}]}
END

CONNECTION=$(npx inlet-gateway api POST /connections --field id -d @- <<END
{
  "name": "Stripe", "kind": "bearer", "allowedOrigins": ["https://api.stripe.com"],
  "config": {"token": "$(cat api-key.txt)"}
}
END
)

# Reads the events of the account once a minute. If one did not arrive at the webhook within five minutes, Inlet publishes it from here.
npx inlet-gateway channels create --app stripe -f - <<END
{
  "uid": "stripe-missed", "kind": "polling", "connectionId": "$CONNECTION",
  "config": {
    "preset": "stripe", "stream": "events", "reconciles": "stripe",
    "request": {"url": "https://api.stripe.com/v1/events"}
  }
}
END

# A source runs only while a subscription needs its events.
npx inlet-gateway subscriptions create 'stripe:*' --app stripe
