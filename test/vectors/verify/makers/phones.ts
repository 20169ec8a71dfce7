import { sign } from "node:crypto";
import { hs256 } from "./jwt.ts";
import { derOf, KEYS, publicSecrets, rawEd25519 } from "./keys.ts";
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
  URL_OF_CHANNEL,
  withHeaders,
} from "./kit.ts";

const TWILIO = "https://www.twilio.com/docs/usage/webhooks/webhooks-security";

/** Formats a form as its sorted names, each followed by its value. */
const concatenateForm = (body: string): string =>
  [...new URLSearchParams(body)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => name + value)
    .join("");

/** Providers of calls, text messages and transactional email. */
export const phones: Readonly<Record<string, Recipe>> = {
  twilio: {
    source: TWILIO,
    sent: { headers: FORM_TYPE, body: "MessageSid=SM1&MessageStatus=delivered&To=%2B15551234567" },
    sign: (sent, key) =>
      withHeaders(sent, {
        "x-twilio-signature": hmac("sha1", key, URL_OF_CHANNEL + concatenateForm(sent.body), "base64"),
      }),
    events: [{ type: "received", id: null }],
    more: [
      caseOf({
        name: "a GET delivery, whose query is part of the signed URL",
        kind: "accept",
        secrets: [{ value: "token" }],
        request: twilioGet("status=delivered"),
        expect: { verified: true },
      }),
      caseOf({
        name: "a GET delivery with an altered query",
        kind: "altered",
        secrets: [{ value: "token" }],
        request: { ...twilioGet("status=delivered"), target: "/hooks/ch_1?MessageSid=SM1&status=failed" },
        expect: { refused: "mismatch" },
      }),
      caseOf({
        name: "a GET delivery with a body, which the signature does not cover",
        kind: "altered",
        secrets: [{ value: "token" }],
        request: { ...twilioGet("status=delivered"), body: "status=failed" },
        expect: { refused: "mismatch" },
      }),
      caseOf({
        name: "a GET delivery whose query was moved into the body of a POST",
        kind: "altered",
        secrets: [{ value: "token" }],
        request: {
          ...twilioGet("status=delivered"),
          method: "POST",
          target: "/hooks/ch_1?MessageSid=SM1",
          body: "&status=delivered",
        },
        expect: { refused: "mismatch" },
      }),
      twilioJson("a JSON delivery with the hash of its body", "accept"),
      twilioJson("a JSON delivery altered after signing", "altered"),
      caseOf({
        name: "the example of Twilio's documentation",
        kind: "accept",
        origin: "documented",
        source: TWILIO,
        secrets: [{ value: "12345" }],
        hooksUrl: "https://mycompany.com",
        request: {
          target: "/myapp.php?foo=1&bar=2",
          headers: { ...FORM_TYPE, "x-twilio-signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8=" },
          body: "Digits=1234&To=%2B18005551212&From=%2B14158675309&Caller=%2B14158675309&CallSid=CA1234567890ABCDE",
        },
        expect: { events: [{ type: "received", id: null }] },
      }),
    ],
  },
  vonage: {
    source: "https://developer.vonage.com/en/getting-started/concepts/webhooks#decoding-signed-webhooks",
    sent: delivery({}, { message_uuid: "aaaaaaaa-bbbb-4ccc-8ddd-0123456789ab", status: "delivered" }),
    sign: (sent, key, atMs) => signVonage(sent, key, sent.body, atMs),
    toleranceSeconds: 360,
    events: [{ type: "received", id: null }],
    more: [
      caseOf({
        name: "a GET delivery with the hash of its query parameters",
        kind: "accept",
        secrets: [{ value: "token" }],
        request: vonageGet("status=answered&from=441632960960"),
        expect: { verified: true },
      }),
      caseOf({
        name: "a GET delivery with an altered query",
        kind: "altered",
        secrets: [{ value: "token" }],
        request: { ...vonageGet("status=answered&from=441632960960"), target: "/hooks/ch_1?status=failed" },
        expect: { refused: "mismatch" },
      }),
    ],
  },
  plivo: {
    source: "https://github.com/plivo/plivo-node/blob/master/lib/utils/v3Security.js",
    sent: { headers: FORM_TYPE, body: "MessageUUID=1&Status=delivered&To=15551234567" },
    sign: (sent, key) => {
      const nonce = "05429567804466091622";
      const signature = hmac("sha256", key, `${URL_OF_CHANNEL}?${concatenateForm(sent.body)}.${nonce}`, "base64");
      const former = hmac("sha256", "the token before", `${URL_OF_CHANNEL}?.${nonce}`, "base64");
      return withHeaders(sent, {
        "x-plivo-signature-v3": `${former},${signature}`,
        "x-plivo-signature-v3-nonce": nonce,
      });
    },
    events: [{ type: "received", id: null }],
  },
  telnyx: {
    source: "https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks",
    secrets: publicSecrets(KEYS.ed25519, (pem) => rawEd25519(pem).toString("base64")),
    sent: delivery(
      {},
      { data: { id: "b301ed3f-1490-491f-995f-6e64e69674d4", event_type: "message.received" } },
    ),
    sign: (sent, key, atMs) => {
      const timestamp = String(atMs / 1_000);
      return withHeaders(sent, {
        "telnyx-timestamp": timestamp,
        "telnyx-signature-ed25519": sign(null, Buffer.from(`${timestamp}|${sent.body}`), key).toString(
          "base64",
        ),
      });
    },
    toleranceSeconds: 300,
    events: [{ type: "message.received", id: "b301ed3f-1490-491f-995f-6e64e69674d4" }],
  },
  sinch: {
    source: "https://developers.sinch.com/docs/conversation/callbacks/",
    sent: delivery({}, { app_id: "01", message_delivery_report: { status: "DELIVERED" } }),
    sign: (sent, key, atMs) => {
      const [nonce, timestamp] = ["01FJA8B4A7BM43YGWSG9GBV067", String(atMs / 1_000)];
      return withHeaders(sent, {
        "x-sinch-webhook-signature-algorithm": "HmacSHA256",
        "x-sinch-webhook-signature-nonce": nonce,
        "x-sinch-webhook-signature-timestamp": timestamp,
        "x-sinch-webhook-signature": hmac("sha256", key, `${sent.body}.${nonce}.${timestamp}`, "base64"),
      });
    },
    events: [{ type: "received", id: null }],
  },
  sendgrid: {
    source:
      "https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features",
    secrets: publicSecrets(KEYS.ec, derOf),
    sent: {
      headers: JSON_TYPE,
      body: '[{"event":"open","sg_event_id":"a1"},\r\n{"event":"click","sg_event_id":"a2"}]\r\n',
    },
    sign: (sent, key, atMs) => {
      const timestamp = String(atMs / 1_000);
      return withHeaders(sent, {
        "x-twilio-email-event-webhook-timestamp": timestamp,
        "x-twilio-email-event-webhook-signature": sign(
          "sha256",
          Buffer.from(timestamp + sent.body),
          key,
        ).toString("base64"),
      });
    },
    events: [
      { type: "open", id: "a1" },
      { type: "click", id: "a2" },
    ],
    more: [
      caseOf({
        name: "the example of SendGrid's library",
        kind: "accept",
        origin: "documented",
        source:
          "https://github.com/sendgrid/sendgrid-nodejs/blob/main/packages/eventwebhook/src/eventwebhook.spec.js",
        secrets: [
          {
            value:
              "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==",
          },
        ],
        request: {
          headers: {
            ...JSON_TYPE,
            "x-twilio-email-event-webhook-timestamp": "1600112502",
            "x-twilio-email-event-webhook-signature":
              "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=",
          },
          body: '[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address","sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA","sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0","smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}]\r\n',
        },
        expect: { events: [{ type: "dropped", id: "ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA" }] },
      }),
    ],
  },
  nylas: {
    source: "https://developer.nylas.com/docs/v3/notifications/",
    sent: delivery(
      {},
      { specversion: "1.0", type: "message.created", id: "mock-id", webhook_delivery_attempt: 1 },
    ),
    sign: ofBody("x-nylas-signature"),
    events: [{ type: "message.created", id: "mock-id" }],
    more: [
      caseOf({
        name: "the challenge",
        kind: "handshake",
        request: { method: "GET", target: "/hooks/ch_1?challenge=bc609b38", headers: {}, body: "" },
        expect: { reply: { status: 200, contentType: "text/plain", headers: {}, body: "bc609b38" } },
      }),
    ],
  },
};

/** Creates a Twilio delivery that is not a form. Its signed URL contains the hash of its body. */
function signVonage(sent: Sent, key: string, payload: string, atMs = AT_MS): Sent {
  const claims = {
    iat: atMs / 1_000,
    jti: "j1",
    iss: "Vonage",
    payload_hash: hash("sha256", payload, "hex"),
    api_key: "a1",
  };
  return withHeaders(sent, { authorization: `Bearer ${hs256(key, claims)}` });
}

/** Vonage hashes the parameters of a GET request as a JSON object. */
function vonageGet(query: string): Sent {
  const sent: Sent = { method: "GET", target: `/hooks/ch_1?${query}`, headers: {}, body: "" };
  return signVonage(sent, "token", json(Object.fromEntries(new URLSearchParams(query))));
}

function twilioGet(query: string): Sent {
  const target = `/hooks/ch_1?MessageSid=SM1&${query}`;
  const signature = hmac("sha1", "token", `https://hooks.example.com${target}`, "base64");
  return { method: "GET", target, headers: { "x-twilio-signature": signature }, body: "" };
}

function twilioJson(name: string, kind: "accept" | "altered") {
  const body = json({ event: "com.twilio.messaging" });
  const target = `/hooks/ch_1?bodySHA256=${hash("sha256", body, "hex")}`;
  const request: Sent = {
    target,
    headers: {
      ...JSON_TYPE,
      "x-twilio-signature": hmac("sha1", "token", `https://hooks.example.com${target}`, "base64"),
    },
    body: kind === "accept" ? body : json({ event: "another" }),
  };
  return caseOf({
    name, kind, request,
    secrets: [{ value: "token" }],
    expect: kind === "accept" ? { events: [{ type: "received", id: null }] } : { refused: "mismatch" },
  });
}
