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
