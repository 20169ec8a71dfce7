import { sign } from "node:crypto";
import { KEYS, publicSecrets } from "./keys.ts";
import { AT_SECONDS, basic, type Case, caseOf, delivery, hmac, JSON_TYPE, ofBody, type Recipe, texts, withHeaders } from "./kit.ts";

const EVENT_ID = "9ea68d7f-6b6d-4a4b-9f0c-1f6a4e9b2c11";
const PAYMENT = "/hooks/ch_1?data.id=PAY-999999999&type=payment";

/** Creates a Mercado Pago notification. `signed` is the part of the signed text with the id. */
function mercadoPago(name: string, target: string, signed: string): Case {
  const v1 = hmac("sha256", "s", `${signed}request-id:${EVENT_ID};ts:${AT_SECONDS};`, "hex");
  const isConsistent = !target.includes("data.id") === (signed === "");
  return caseOf({
    name,
    kind: isConsistent ? "accept" : "altered",
    secrets: [{ value: "s" }],
    request: {
      target,
      headers: { ...JSON_TYPE, "x-request-id": EVENT_ID, "x-signature": `ts=${AT_SECONDS},v1=${v1}` },
      body: '{"id":12345,"type":"payment","data":{"id":"PAY-999999999"}}',
    },
    expect: isConsistent ? { events: [{ type: "payment", id: "12345" }] } : { refused: "mismatch" },
  });
}

/** Providers of billing and payments. */
export const billing: Readonly<Record<string, Recipe>> = {
  coinbase: {
    source: "https://docs.cdp.coinbase.com/webhooks/verify-signatures",
    sent: delivery(
      { "x-event-id": EVENT_ID, "x-event-type": "onchain.activity.detected" },
      { network: "base-mainnet" },
    ),
    sign: (sent, key, atMs) => {
      const t = String(atMs / 1_000);
      const names = ["content-type", "x-event-id", "x-event-type"];
      const values = names.map((name) => sent.headers[name]).join(".");
      const v0 = hmac("sha256", key, `${t}.${sent.body}`, "hex");
      const v1 = hmac("sha256", key, `${t}.${names.join(" ")}.${values}.${sent.body}`, "hex");
      return withHeaders(sent, { "x-hook0-signature": `t=${t},v0=${v0},h=${names.join(" ")},v1=${v1}` });
    },
    toleranceSeconds: 300,
    events: [{ type: "onchain.activity.detected", id: EVENT_ID }],
  },
  "coinbase-commerce": {
    source: "https://docs.cdp.coinbase.com/commerce-onchain/docs/webhooks-security",
    sent: delivery({}, { id: 1, attempt_number: 1, event: { id: EVENT_ID, type: "charge:confirmed" } }),
    sign: ofBody("x-cc-webhook-signature"),
    events: [{ type: "charge:confirmed", id: EVENT_ID }],
    more: [
      caseOf({
        name: "the example of Coinbase's library",
        kind: "accept",
        origin: "documented",
        source: "https://github.com/coinbase/coinbase-commerce-node/blob/master/test/testWebhook.spec.js",
        secrets: [{ value: "30291a20-0bd1-4267-9b0f-e6e7b123c0bf" }],
        request: {
          headers: {
            ...JSON_TYPE,
            "x-cc-webhook-signature": "8be7742c7d372f08a6a3224edadf18a22b65fa9e28f3f2de97376cdaa092590d",
          },
          body: '{"id":1,"scheduled_for":"2017-01-31T20:50:02Z","attempt_number":1,"event":{"id":"24934862-d980-46cb-9402-43c81b0cdba6","type":"charge:created","api_version":"2018-03-22","created_at":"2017-01-31T20:49:02Z","data":{"code":"66BEOV2A","name":"The Sovereign Individual","description":"Mastering the Transition to the Information Age","hosted_url":"https://commerce.coinbase.com/charges/66BEOV2A","created_at":"2017-01-31T20:49:02Z","expires_at":"2017-01-31T21:04:02Z","timeline":[{"time":"2017-01-31T20:49:02Z","status":"NEW"}],"metadata":{},"pricing_type":"no_price","payments":[],"addresses":{"bitcoin":"0000000000000000000000000000000000","ethereum":"0x0000000000000000000000000000000000000000","litecoin":"3000000000000000000000000000000000","bitcoincash":"bitcoincash:000000000000000000000000000000000000000000"}}}}',
        },
        expect: { events: [{ type: "charge:created", id: "24934862-d980-46cb-9402-43c81b0cdba6" }] },
      }),
    ],
  },
  "checkout-com": {
    source:
      "https://www.checkout.com/docs/developer-resources/webhooks/manage-webhooks/set-up-your-webhook-receiver",
    sent: delivery({}, { id: "evt_az5sblvku4ge3dwpztvyizgcau", type: "payment_approved" }),
    sign: ofBody("cko-signature"),
    events: [{ type: "payment_approved", id: "evt_az5sblvku4ge3dwpztvyizgcau" }],
  },
  mollie: {
    source: "https://docs.mollie.com/reference/webhooks-best-practices",
    sent: delivery({}, { resource: "event", id: "event_GvJ8WHrp5isUdRub9CJyH", type: "payment-link.paid" }),
    sign: ofBody("x-mollie-signature", "sha256="),
    events: [{ type: "payment-link.paid", id: "event_GvJ8WHrp5isUdRub9CJyH" }],
    more: [
      caseOf({
        name: "a signature without the prefix sha256=",
        kind: "accept",
        secrets: [{ value: "s" }],
        request: withHeaders(delivery({}, { id: "event_1", type: "payment-link.paid" }), {
          "x-mollie-signature": hmac("sha256", "s", '{"id":"event_1","type":"payment-link.paid"}', "hex"),
        }),
        expect: { events: [{ type: "payment-link.paid", id: "event_1" }] },
      }),
    ],
  },
  paystack: {
    source: "https://paystack.com/docs/payments/webhooks/",
    secrets: texts("sk_test_c6f1bd", "sk_test_7e2b9c", "sk_test_000000"),
    sent: delivery({}, { event: "charge.success", data: { id: 302961 } }),
    sign: ofBody("x-paystack-signature", "", "sha512"),
    events: [{ type: "charge.success", id: null }],
  },
  flutterwave: {
    source: "https://developer.flutterwave.com/v3.0/docs/webhooks",
    sent: delivery({}, { event: "charge.completed", data: { id: 285959875 } }),
    sign: (sent, key) => withHeaders(sent, { "verif-hash": key }),
    alter: (sent) => withHeaders(sent, { "verif-hash": `${sent.headers["verif-hash"]}0` }),
    uncovered: (sent) => ({ ...sent, body: sent.body.replace("285959875", "1") }),
    events: [{ type: "charge.completed", id: null }],
  },
  recurly: {
    source: "https://docs.recurly.com/recurly-subscriptions/docs/webhooks",
    sent: delivery({}, { id: "rjxwmwedwqug", object_type: "account", event_type: "created" }),
    sign: (sent, key, atMs) => {
      const signature = hmac("sha256", key, `${atMs}.${sent.body}`, "hex");
      const former = hmac("sha256", "the secret before", `${atMs}.${sent.body}`, "hex");
      return withHeaders(sent, { "recurly-signature": `${atMs},${former},${signature}` });
    },
    toleranceSeconds: 300,
    events: [{ type: "created", id: null }],
  },
  chargebee: {
    source: "https://www.chargebee.com/docs/billing/2.0/site-configuration/webhook_settings",
    secrets: texts("inlet:9f2c41", "inlet:77aa0b", "inlet:000000"),
    sent: delivery({}, { id: "ev_16BHbhF4s42tO2lK", event_type: "subscription_created" }),
    sign: basic,
    alter: (sent) => basic(sent, "inlet:9f2c42"),
    uncovered: (sent) => ({ ...sent, body: sent.body.replace("{", '{"altered":true,') }),
    events: [{ type: "subscription_created", id: "ev_16BHbhF4s42tO2lK" }],
  },
  wise: {
    source: "https://docs.wise.com/guides/developer/webhooks/event-handling",
    secrets: publicSecrets(KEYS.rsa),
    sent: delivery({ "x-delivery-id": EVENT_ID }, { event_type: "transfers#state-change", data: {} }),
    sign: (sent, key) =>
      withHeaders(sent, {
        "x-signature-sha256": sign("sha256", Buffer.from(sent.body), key).toString("base64"),
      }),
    events: [{ type: "transfers#state-change", id: EVENT_ID }],
  },
  "mercado-pago": {
    source: "https://www.mercadopago.com/developers/en/docs/your-integrations/notifications/webhooks",
    sent: {
      target: PAYMENT,
      headers: { ...JSON_TYPE, "x-request-id": EVENT_ID },
      body: '{"id":12345,"type":"payment","data":{"id":"PAY-999999999"}}',
    },
    sign: (sent, key, atMs) => {
      const ts = String(atMs / 1_000);
      const v1 = hmac("sha256", key, `id:pay-999999999;request-id:${EVENT_ID};ts:${ts};`, "hex");
      return withHeaders(sent, { "x-signature": `ts=${ts},v1=${v1}` });
    },
    alter: (sent) => ({ ...sent, target: "/hooks/ch_1?data.id=PAY-1&type=payment" }),
    uncovered: (sent) => ({ ...sent, body: sent.body.replace('"data"', '"altered":true,"data"') }),
    events: [{ type: "payment", id: "12345" }],
    more: [
      mercadoPago("an id signed in its original case", PAYMENT, "id:PAY-999999999;"),
      mercadoPago("an id signed in lower case", PAYMENT, "id:pay-999999999;"),
      mercadoPago("a notification without an id", "/hooks/ch_1?type=payment", ""),
      mercadoPago("an id added after signing", PAYMENT, ""),
      mercadoPago("an id removed after signing", "/hooks/ch_1?type=payment", "id:PAY-1;"),
    ],
  },
  dwolla: {
    source: "https://developers.dwolla.com/docs/webhook-subscriptions",
    sent: delivery({}, { id: EVENT_ID, topic: "customer_created" }),
    sign: ofBody("x-request-signature-sha-256"),
    events: [{ type: "customer_created", id: EVENT_ID }],
  },
  orb: {
    source: "https://docs.withorb.com/integrations-and-exports/webhooks",
    sent: delivery({}, { id: "o4mmewpfNNTnjfZc", type: "resource_event.test" }),
    sign: (sent, key, atMs) => {
      const time = new Date(atMs).toISOString().replace("Z", "");
      const v1 = hmac("sha256", key, `v1:${time}:${sent.body}`, "hex");
      return withHeaders(sent, { "x-orb-timestamp": time, "x-orb-signature": `v1=${v1}` });
    },
    events: [{ type: "resource_event.test", id: "o4mmewpfNNTnjfZc" }],
    more: [
      caseOf({
        name: "the example of Orb's library",
        kind: "accept",
        origin: "documented",
        source: "https://github.com/orbcorp/orb-node/blob/main/tests/api-resources/webhooks.test.ts",
        secrets: [{ value: "c-UGKYdnhHh436B_sMouYAPUvXyWpzOdunZBV5dFSD8" }],
        request: {
          headers: {
            ...JSON_TYPE,
            "x-orb-timestamp": "2024-03-27T15:42:29.551",
            "x-orb-signature": "v1=9d25de966891ab0bc18754faf8d83d0980b44ae330fcc130b41a6cf3daf1f391",
          },
          body: '{"id": "o4mmewpfNNTnjfZc", "created_at": "2024-03-27T15:42:29+00:00", "type": "resource_event.test", "properties": {"message": "A test webhook from Orb. Happy testing!"}}',
        },
        expect: { events: [{ type: "resource_event.test", id: "o4mmewpfNNTnjfZc" }] },
      }),
    ],
  },
};
