import { sign } from "node:crypto";
import { crc32 } from "node:zlib";
import { KEYS } from "./keys.ts";
import {
  AT_MS,
  caseOf,
  delivery,
  FORM_TYPE,
  hash,
  hmac,
  JSON_TYPE,
  json,
  ofBody,
  type Recipe,
  type Sent,
  texts,
  URL_OF_CHANNEL,
  withHeaders,
} from "./kit.ts";

const SQUARE = "https://github.com/square/square-nodejs-sdk/blob/master/tests/integration/webhooks.test.ts";
const ADYEN = "https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures";

/** Providers of payments. */
export const payments: Readonly<Record<string, Recipe>> = {
  stripe: {
    source: "https://docs.stripe.com/webhooks/signature",
    secrets: texts("whsec_c6f1bd0ac3a34b7e", "whsec_7e2b9c51d8424fd0", "whsec_0000000000000000"),
    sent: delivery({}, { id: "evt_1NG8Du2eZvKYlo2C", object: "event", type: "charge.succeeded" }),
    sign: (sent, key, atMs) => {
      const t = String(atMs / 1_000);
      const v1 = hmac("sha256", key, `${t}.${sent.body}`, "hex");
      return withHeaders(sent, { "stripe-signature": `t=${t},v1=${v1},v0=${hash("sha256", v1, "hex")}` });
    },
    toleranceSeconds: 300,
    events: [{ type: "charge.succeeded", id: "evt_1NG8Du2eZvKYlo2C" }],
  },
  paypal: {
    source: "https://developer.paypal.com/api/rest/webhooks/rest/",
    secrets: texts("0EH40505U7160970P", "1JE4291016473214C", "9XX00000XX0000000"),
    fetched: { [paypalCertificate("a5cafa77")]: KEYS.rsa[0].certificate },
    sent: delivery({}, { id: "WH-2WR32451HC0233532", event_type: "PAYMENT.SALE.COMPLETED", resource: {} }),
    sign: (sent, webhookId, atMs) => {
      const [id, time] = ["69cd13f0-d67a-11e5-baa3-778b53f4ae55", new Date(atMs).toISOString()];
      const signed = `${id}|${time}|${webhookId}|${crc32(sent.body)}`;
      return withHeaders(sent, {
        "paypal-auth-algo": "SHA256withRSA",
        "paypal-cert-url": paypalCertificate("a5cafa77"),
        "paypal-transmission-id": id,
        "paypal-transmission-time": time,
        "paypal-transmission-sig": sign("sha256", Buffer.from(signed), KEYS.rsa[0].private).toString(
          "base64",
        ),
      });
    },
    events: [{ type: "PAYMENT.SALE.COMPLETED", id: "WH-2WR32451HC0233532" }],
    more: [foreignPaypalCertificate()],
  },
  square: {
    source: "https://developer.squareup.com/docs/webhooks/step3validate",
    sent: delivery({}, { type: "payment.created", event_id: "13b867cf-db3d-4b1c-90b6-2f32a9d78124" }),
    sign: (sent, key) =>
      withHeaders(sent, {
        "x-square-hmacsha256-signature": hmac("sha256", key, URL_OF_CHANNEL + sent.body, "base64"),
      }),
    events: [{ type: "payment.created", id: "13b867cf-db3d-4b1c-90b6-2f32a9d78124" }],
    more: [
      caseOf({
        name: "the example of Square's library",
        kind: "accept",
        origin: "documented",
        source: SQUARE,
        secrets: [{ value: "Ibxx_5AKakO-3qeNVR61Dw" }],
        hooksUrl: "https://webhook.site",
        request: {
          target: "/679a4f3a-dcfa-49ee-bac5-9d0edad886b9",
          headers: {
            ...JSON_TYPE,
            "x-square-hmacsha256-signature": "GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4=",
          },
          body: '{"merchant_id":"MLEFBHHSJGVHD","type":"webhooks.test_notification","event_id":"ac3ac95b-f97d-458c-a6e6-18981597e05f","created_at":"2022-07-13T20:30:59.037339943Z","data":{"type":"webhooks","id":"bc368e64-01aa-407e-b46e-3231809b1129"}}',
        },
        expect: {
          events: [{ type: "webhooks.test_notification", id: "ac3ac95b-f97d-458c-a6e6-18981597e05f" }],
        },
      }),
    ],
  },
  adyen: {
    source: ADYEN,
    secrets: texts("44782DEF547AAA06C910C43932B1EB0C", "DFB1EB5485895CFA84146406857104AB", "00".repeat(16)),
    sent: { headers: JSON_TYPE, body: adyenBody("") },
    sign: (sent, key) => {
      const signed = "7914073381342284::TestMerchant:TestPayment-1407325143704:1130:EUR:AUTHORISATION:true";
      return { ...sent, body: adyenBody(hmac("sha256", Buffer.from(key, "hex"), signed, "base64")) };
    },
    alter: (sent) => ({ ...sent, body: sent.body.replace("1130", "1131") }),
    uncovered: (sent) => ({ ...sent, body: sent.body.replace('"reason":""', '"reason":"altered"') }),
    events: [{ type: "AUTHORISATION", id: "7914073381342284" }],
    more: [
      caseOf({
        name: "the example of Adyen's documentation",
        kind: "accept",
        origin: "documented",
        source: ADYEN,
        secrets: [{ value: "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056" }],
        request: { headers: JSON_TYPE, body: adyenBody("coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=") },
        expect: { events: [{ type: "AUTHORISATION", id: "7914073381342284" }] },
      }),
      caseOf({
        name: "a second notification added after signing",
        kind: "altered",
        secrets: [{ value: "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056" }],
        request: {
          headers: JSON_TYPE,
          body: adyenBody("coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=", {
            NotificationRequestItem: { pspReference: "1", eventCode: "REFUND" },
          }),
        },
        expect: { refused: "missing" },
      }),
    ],
  },
  paddle: {
    source: "https://developer.paddle.com/webhooks/signature-verification",
    secrets: texts("pdl_ntfset_01a_c6f1bd", "pdl_ntfset_01b_7e2b9c", "pdl_ntfset_01c_000000"),
    sent: delivery({}, { event_id: "evt_01hv8x29kz0t586xy6zn1a62ny", event_type: "transaction.paid" }),
    sign: (sent, key, atMs) => {
      const ts = String(atMs / 1_000);
      const h1 = hmac("sha256", key, `${ts}:${sent.body}`, "hex");
      return withHeaders(sent, { "paddle-signature": `ts=${ts};h1=${h1}` });
    },
    toleranceSeconds: 300,
    events: [{ type: "transaction.paid", id: "evt_01hv8x29kz0t586xy6zn1a62ny" }],
    more: [
      caseOf({
        name: "the example of Paddle's library",
        kind: "accept",
        origin: "documented",
        source:
          "https://github.com/PaddleHQ/paddle-node-sdk/blob/main/src/__tests__/notifications/webhooks-validator.edge.test.ts",
        secrets: [{ value: "VALID_SECRET" }],
        arrivedAt: "2023-11-01T00:00:00.000Z",
        request: {
          headers: {
            ...JSON_TYPE,
            "paddle-signature":
              "ts=1698796800;h1=a300428748dce5c70e4da19bffd60769591ea969c99dea3105d0ec9612cf43f9",
          },
          body: '{"data": ["1", "2"]}',
        },
        expect: { verified: true },
      }),
    ],
  },
  "lemon-squeezy": {
    source: "https://docs.lemonsqueezy.com/help/webhooks/signing-requests",
    sent: delivery({ "x-event-name": "order_created" }, { meta: { event_name: "order_created" }, data: {} }),
    sign: ofBody("x-signature"),
    events: [{ type: "order_created", id: null }],
  },
  braintree: {
    source:
      "https://github.com/braintree/braintree_node/blob/master/lib/braintree/webhook_notification_gateway.js",
    secrets: texts("integration_private_key", "next_private_key", "other_private_key"),
    sent: { headers: FORM_TYPE, body: "" },
    sign: (sent, key) => {
      const payload = `${Buffer.from("<notification><kind>check</kind></notification>").toString("base64")}\n`;
      const signature = hmac("sha1", hashBytes("sha1", key), payload, "hex");
      const form = new URLSearchParams({
        bt_signature: `integration_public_key|${signature}`,
        bt_payload: payload,
      });
      return { ...sent, body: form.toString() };
    },
    alter: (sent) => ({ ...sent, body: sent.body.replace("PG5v", "PG5w") }),
    uncovered: (sent) => ({ ...sent, body: `${sent.body}&more=1` }),
    events: [{ type: "received", id: null }],
  },
  razorpay: {
    source: "https://razorpay.com/docs/webhooks/validate-test/",
    sent: delivery(
      { "x-razorpay-event-id": "IQ1wQUkKbWnBs2" },
      { entity: "event", event: "payment.captured" },
    ),
    sign: ofBody("x-razorpay-signature"),
    events: [{ type: "payment.captured", id: "IQ1wQUkKbWnBs2" }],
    more: [
      caseOf({
        name: "the example of Razorpay's library",
        kind: "accept",
        origin: "documented",
        source: "https://github.com/razorpay/razorpay-node/blob/master/test/utils/razorpay-utils.spec.js",
        secrets: [{ value: "123456" }],
        request: {
          headers: {
            ...JSON_TYPE,
            "x-razorpay-signature": "2fe04e22977002e6c7cb553adab8b460cb9e2a4970d5953cb27a8472752e3bbc",
          },
          body: '{"a":1,"b":2,"c":{"d":3}}',
        },
        expect: { verified: true },
      }),
    ],
  },
  gocardless: {
    source: "https://developer.gocardless.com/api-reference/#webhooks-signing-webhooks",
    sent: delivery({}, { events: [{ id: "EV123", resource_type: "payments", action: "confirmed" }] }),
    sign: ofBody("webhook-signature"),
    events: [{ type: "payments", id: "EV123" }],
    more: [
      caseOf({
        name: "the example of GoCardless's library",
        kind: "accept",
        origin: "documented",
        source: "https://github.com/gocardless/gocardless-nodejs/blob/master/src/webhooks.test.ts",
        secrets: [{ value: "ED7D658C-D8EB-4941-948B-3973214F2D49" }],
        request: {
          headers: {
            ...JSON_TYPE,
            "webhook-signature": "2693754819d3e32d7e8fcb13c729631f316c6de8dc1cf634d6527f1c07276e7e",
          },
          body: '{"events":[{"id":"EV00BD05S5VM2T","created_at":"2018-07-05T09:13:51.404Z","resource_type":"subscriptions","action":"created","links":{"subscription":"SB0003JJQ2MR06"},"details":{"origin":"api","cause":"subscription_created","description":"Subscription created via the API."},"metadata":{}},{"id":"EV00BD05TB8K63","created_at":"2018-07-05T09:13:56.893Z","resource_type":"mandates","action":"created","links":{"mandate":"MD000AMA19XGEC"},"details":{"origin":"api","cause":"mandate_created","description":"Mandate created via the API."},"metadata":{}}]}',
        },
        expect: {
          events: [
            { type: "subscriptions", id: "EV00BD05S5VM2T" },
            { type: "mandates", id: "EV00BD05TB8K63" },
          ],
        },
      }),
    ],
  },
};

function hashBytes(name: string, text: string): Buffer {
  return Buffer.from(hash(name, text, "hex"), "hex");
}

function paypalCertificate(name: string): string {
  return `https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-${name}`;
}

/** Creates a delivery with a valid signature whose certificate is at a URL outside PayPal. */
function foreignPaypalCertificate() {
  const [id, time, body] = ["1", new Date(AT_MS).toISOString(), json({ id: "WH-1", event_type: "X" })];
  const signed = `${id}|${time}|0EH40505U7160970P|${crc32(body)}`;
  const request: Sent = {
    headers: {
      ...JSON_TYPE,
      "paypal-cert-url": "https://api.paypal.com.example.net/v1/notifications/certs/CERT-1",
      "paypal-transmission-id": id,
      "paypal-transmission-time": time,
      "paypal-transmission-sig": sign("sha256", Buffer.from(signed), KEYS.rsa[0].private).toString("base64"),
    },
    body,
  };
  return caseOf({
    name: "a certificate at a URL of another site", kind: "wrong secret", request,
    secrets: [{ value: "0EH40505U7160970P" }],
    expect: { refused: "malformed" },
  });
}

/** Creates the body of the example in Adyen's documentation. */
function adyenBody(hmacSignature: string, ...further: readonly unknown[]): string {
  const item = {
    additionalData: { hmacSignature },
    amount: { currency: "EUR", value: 1130 },
    eventCode: "AUTHORISATION",
    eventDate: "2026-01-01T00:00:00+00:00",
    merchantAccountCode: "TestMerchant",
    merchantReference: "TestPayment-1407325143704",
    pspReference: "7914073381342284",
    reason: "",
    success: "true",
  };
  return json({ live: "false", notificationItems: [{ NotificationRequestItem: item }, ...further] });
}
