import {
  answer,
  caseOf,
  delivery,
  FORM_TYPE,
  hmac,
  JSON_TYPE,
  json,
  ofBody,
  type Recipe,
  withHeaders,
} from "./kit.ts";

const ID = "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043";
const INTENT = json({ events: [], firstEventSequence: 0, lastEventSequence: 0, entropy: "S0m3r4Nd0mt3xt" });

/** Providers of shops, accounting and shipment tracking. */
export const shops: Readonly<Record<string, Recipe>> = {
  shopify: {
    source: "https://shopify.dev/docs/apps/build/webhooks/subscribe/https",
    sent: delivery(
      { "x-shopify-topic": "orders/create", "x-shopify-webhook-id": ID, "x-shopify-event-id": "e" },
      { id: 820982911946154500, email: "jon@example.com" },
    ),
    sign: ofBody("x-shopify-hmac-sha256", "", "sha256", "base64"),
    events: [{ type: "orders/create", id: ID }],
  },
  woocommerce: {
    source: "https://woocommerce.com/document/webhooks/",
    sent: delivery({ "x-wc-webhook-topic": "order.created", "x-wc-webhook-delivery-id": "abc" }, { id: 727 }),
    sign: ofBody("x-wc-webhook-signature", "", "sha256", "base64"),
    events: [{ type: "order.created", id: null }],
    more: [
      caseOf({
        name: "the ping after the creation of a webhook",
        kind: "handshake",
        request: { headers: FORM_TYPE, body: "webhook_id=12" },
        expect: { reply: answer("") },
      }),
      caseOf({
        name: "a signed request, which is not a ping",
        kind: "handshake",
        request: {
          headers: { ...FORM_TYPE, "x-wc-webhook-signature": "c2lnbmF0dXJl" },
          body: "webhook_id=12",
        },
        expect: { handshake: "none" },
      }),
    ],
  },
  bigcommerce: {
    source: "https://developer.bigcommerce.com/docs/integrations/webhooks",
    sent: delivery(
      {},
      { scope: "store/order/statusUpdated", data: { type: "order", id: 173331 }, hash: "3f9ea420af83450d" },
    ),
    sign: (sent, key) => withHeaders(sent, { "x-webhook-token": key }),
    alter: (sent) => withHeaders(sent, { "x-webhook-token": `${sent.headers["x-webhook-token"]}0` }),
    uncovered: (sent) => ({ ...sent, body: sent.body.replace("173331", "1") }),
    events: [{ type: "store/order/statusUpdated", id: "3f9ea420af83450d" }],
  },
  xero: {
    source: "https://developer.xero.com/documentation/guides/webhooks/overview/",
    sent: delivery(
      {},
      {
        events: [{ resourceId: ID, eventCategory: "CONTACT", eventType: "UPDATE" }],
        firstEventSequence: 1,
        lastEventSequence: 1,
        entropy: "S0m3r4Nd0mt3xt",
      },
    ),
    sign: ofBody("x-xero-signature", "", "sha256", "base64"),
    events: [{ type: "CONTACT", id: null }],
    more: [
      caseOf({
        name: "an intent to receive with a valid signature",
        kind: "handshake",
        secrets: [{ value: "k" }],
        request: {
          headers: { ...JSON_TYPE, "x-xero-signature": hmac("sha256", "k", INTENT, "base64") },
          body: INTENT,
        },
        expect: { reply: answer("") },
      }),
      caseOf({
        name: "an intent to receive with an invalid signature",
        kind: "handshake",
        secrets: [{ value: "k" }],
        request: {
          headers: { ...JSON_TYPE, "x-xero-signature": hmac("sha256", "another", INTENT, "base64") },
          body: INTENT,
        },
        expect: { refused: "mismatch" },
      }),
    ],
  },
  aftership: {
    source: "https://www.aftership.com/docs/tracking/webhook/webhook-signature",
    sent: delivery({}, { event: "tracking_update", event_id: ID, msg: {} }),
    sign: ofBody("aftership-hmac-sha256", "", "sha256", "base64"),
    events: [{ type: "tracking_update", id: ID }],
  },
};
