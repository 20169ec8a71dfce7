import { readFileSync } from "node:fs";
import { sign } from "node:crypto";
import { derOf, KEYS, publicSecrets } from "./keys.ts";
import {
  answer,
  basic,
  caseOf,
  delivery,
  FORM_TYPE,
  hmac,
  type Recipe,
  type Sent,
  texts,
  URL_OF_CHANNEL,
  withHeaders,
} from "./kit.ts";

const MAILGUN = "https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks";

/** Reads the sample of a preset, whose signature is replaced by that of a vector. */
function sampleOf(preset: string): Sent {
  const file = new URL(`../../../../src/verify/presets/${preset}.json`, import.meta.url);
  const { headers, body } = JSON.parse(readFileSync(file, "utf8")).sample as Sent;
  return { headers, body };
}

const PASSWORDS = texts("inlet:9f2c41", "inlet:77aa0b", "inlet:000000");

/** Adds the secret of a Mailchimp webhook to the query of its URL. */
const withSecret = (sent: Sent, secret: string): Sent => ({
  ...sent,
  target: `/hooks/ch_1?secret=${secret}`,
});

/** Providers of email delivery and email campaigns. */
export const mails: Readonly<Record<string, Recipe>> = {
  mailgun: {
    source: MAILGUN,
    sent: delivery({}, { "event-data": { id: "CPgfbmQMTCKtHW6uIWtuVe", event: "delivered" } }),
    sign: (sent, key, atMs) => {
      const [timestamp, token] = [String(atMs / 1_000), "a8ce0edb2dd8301dee6c2405235584e45aa91d1e9f979f3de0"];
      const signature = { timestamp, token, signature: hmac("sha256", key, timestamp + token, "hex") };
      return { ...sent, body: sent.body.replace("{", `{"signature":${JSON.stringify(signature)},`) };
    },
    alter: (sent) => ({ ...sent, body: sent.body.replace("a8ce0edb", "b8ce0edb") }),
    uncovered: (sent) => ({
      ...sent,
      body: sent.body.replace('"event-data":{', '"event-data":{"altered":true,'),
    }),
    events: [{ type: "delivered", id: "CPgfbmQMTCKtHW6uIWtuVe" }],
  },
  postmark: {
    source: "https://postmarkapp.com/developer/webhooks/webhooks-overview",
    secrets: texts("inlet:9f2c41", "inlet:77aa0b", "inlet:000000"),
    sent: delivery({}, { RecordType: "Bounce", MessageID: "883953f4-6105-42a2-a16a-77a8eac79483" }),
    sign: basic,
    alter: (sent) => basic(sent, "inlet:9f2c42"),
    uncovered: (sent) => ({ ...sent, body: sent.body.replace("883953f4", "00000000") }),
    events: [{ type: "Bounce", id: null }],
  },
  "postmark-inbound": {
    source: "https://postmarkapp.com/developer/webhooks/inbound-webhook",
    secrets: PASSWORDS,
    sent: sampleOf("postmark-inbound"),
    sign: basic,
    alter: (sent) => basic(sent, "inlet:9f2c42"),
    uncovered: (sent) => ({ ...sent, body: sent.body.replace("Printer", "Altered") }),
    events: [{ type: "received", id: "73e6d360-66eb-11e1-8e72-a8904824019b" }],
  },
  cloudmailin: {
    source: "https://docs.cloudmailin.com/receiving_email/securing_your_email_url_target/",
    secrets: PASSWORDS,
    sent: sampleOf("cloudmailin"),
    sign: basic,
    alter: (sent) => basic(sent, "inlet:9f2c42"),
    uncovered: (sent) => ({ ...sent, body: sent.body.replace("Printer", "Altered") }),
    events: [{ type: "received", id: null }],
  },
  "mailgun-routes": {
    source: MAILGUN,
    sent: sampleOf("mailgun-routes"),
    sign: signRoute,
    alter: (sent) => ({ ...sent, body: sent.body.replace("a8ce0edb", "b8ce0edb") }),
    uncovered: (sent) => ({ ...sent, body: sent.body.replace("Printer", "Altered") }),
    events: [{ type: "received", id: null }],
    more: [
      caseOf({
        name: "an e-mail with an attachment, as multipart/form-data",
        kind: "accept",
        secrets: [{ value: "key" }],
        request: toMultipart(signRoute(sampleOf("mailgun-routes"), "key")),
        expect: { events: [{ type: "received", id: null }] },
      }),
      caseOf({
        name: "an e-mail as multipart/form-data with another token",
        kind: "altered",
        secrets: [{ value: "key" }],
        request: toMultipart(signRoute(sampleOf("mailgun-routes"), "key"), "another"),
        expect: { refused: "mismatch" },
      }),
    ],
  },
  "sendgrid-inbound": {
    source:
      "https://www.twilio.com/docs/sendgrid/for-developers/parsing-email/securing-your-parse-webhooks",
    secrets: publicSecrets(KEYS.ec, derOf),
    sent: sampleOf("sendgrid-inbound"),
    sign: (sent, key, atMs) => {
      const timestamp = String(atMs / 1_000);
      const signature = sign("sha256", Buffer.from(timestamp + sent.body), key).toString("base64");
      return withHeaders(sent, {
        "x-twilio-email-event-webhook-timestamp": timestamp,
        "x-twilio-email-event-webhook-signature": signature,
      });
    },
    alter: (sent) => ({ ...sent, body: sent.body.replace("a photo", "another photo") }),
    events: [{ type: "received", id: null }],
  },
  mandrill: {
    source: "https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/",
    sent: {
      headers: FORM_TYPE,
      body: `mandrill_events=${encodeURIComponent('[{"event":"send","_id":"1"}]')}`,
    },
    sign: (sent, key) => {
      const signed = `${URL_OF_CHANNEL}mandrill_events${new URLSearchParams(sent.body).get("mandrill_events")}`;
      return withHeaders(sent, { "x-mandrill-signature": hmac("sha1", key, signed, "base64") });
    },
    events: [{ type: "received", id: null }],
    more: [
      caseOf({
        name: "the HEAD check of the URL",
        kind: "handshake",
        request: { method: "HEAD", headers: {}, body: "" },
        expect: { reply: answer("") },
      }),
    ],
  },
  mailchimp: {
    source: "https://mailchimp.com/developer/marketing/guides/sync-audience-data-webhooks/",
    sent: {
      headers: FORM_TYPE,
      body: "type=subscribe&fired_at=2026-01-01+00%3A00%3A00&data%5Bid%5D=8a25ff1d98",
    },
    sign: withSecret,
    alter: (sent) => withSecret(sent, "another"),
    uncovered: (sent) => ({ ...sent, body: `${sent.body}&altered=true` }),
    events: [{ type: "subscribe", id: null }],
    more: [
      caseOf({
        name: "the GET check of the URL",
        kind: "handshake",
        secrets: [{ value: "k" }],
        request: withSecret({ method: "GET", headers: {}, body: "" }, "k"),
        expect: { reply: answer("") },
      }),
    ],
  },
  "customer-io": {
    source: "https://docs.customer.io/journeys/webhooks/",
    sent: delivery({}, { event_id: "01E4C4CT6YDC7Y5M7FE1GWWPQJ", object_type: "email", metric: "opened" }),
    sign: (sent, key, atMs) => {
      const timestamp = String(atMs / 1_000);
      const signature = hmac("sha256", key, `v0:${timestamp}:${sent.body}`, "hex");
      return withHeaders(sent, { "x-cio-timestamp": timestamp, "x-cio-signature": signature });
    },
    events: [{ type: "opened", id: "01E4C4CT6YDC7Y5M7FE1GWWPQJ" }],
  },
  klaviyo: {
    source: "https://developers.klaviyo.com/en/docs/working_with_system_webhooks",
    sent: delivery(
      {},
      { data: [{ external_id: "4vYDZuQ3a3f", topic: "event:klaviyo.email_delivered" }], meta: {} },
    ),
    sign: (sent, key, atMs) => {
      const timestamp = new Date(atMs).toUTCString();
      const signature = hmac("sha256", key, sent.body + timestamp, "hex");
      return withHeaders(sent, { "klaviyo-timestamp": timestamp, "klaviyo-signature": signature });
    },
    events: [{ type: "event:klaviyo.email_delivered", id: "4vYDZuQ3a3f" }],
  },
};

/** Signs the timestamp and the token in a form. */
function signRoute(sent: Sent, key: string): Sent {
  const form = new URLSearchParams(sent.body);
  const signed = `${form.get("timestamp")}${form.get("token")}`;
  form.set("signature", hmac("sha256", key, signed, "hex"));
  return { ...sent, body: form.toString() };
}

/** Writes a form as multipart/form-data with an attachment. */
function toMultipart(sent: Sent, token?: string): Sent {
  const parts = [...new URLSearchParams(sent.body)].map(
    ([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${name === "token" ? (token ?? value) : value}\r\n`,
  );
  const file = '--b\r\nContent-Disposition: form-data; name="attachment-1"; filename="a.txt"\r\n\r\na photo\r\n';
  return { ...sent, headers: { "content-type": "multipart/form-data; boundary=b" }, body: `${parts.join("")}${file}--b--` };
}
