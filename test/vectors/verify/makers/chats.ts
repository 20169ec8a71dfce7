import { sign } from "node:crypto";
import { KEYS, publicSecrets, rawEd25519 } from "./keys.ts";
import {
  AT_SECONDS,
  answer,
  caseOf,
  delivery,
  FORM_TYPE,
  hmac,
  JSON_TYPE,
  json,
  ofBody,
  type Recipe,
  type Sent,
  withHeaders,
} from "./kit.ts";

const SLACK = "https://docs.slack.dev/authentication/verifying-requests-from-slack/";
const META = "https://developers.facebook.com/docs/graph-api/webhooks/getting-started";

/** Slack's scheme, which other providers also use. */
const v0 =
  (prefix: string, signatureName: string, timestampName: string): Recipe["sign"] =>
  (sent, key, atMs) => {
    const timestamp = String(atMs / 1_000);
    const signature = hmac("sha256", key, `v0:${timestamp}:${sent.body}`, "hex");
    return withHeaders(sent, { [timestampName]: timestamp, [signatureName]: prefix + signature });
  };
const slackSign = v0("v0=", "x-slack-signature", "x-slack-request-timestamp");
const zoomSign = v0("v0=", "x-zm-signature", "x-zm-request-timestamp");
const AT_MS = Number(AT_SECONDS) * 1_000;

const slackChallenge = delivery(
  {},
  { token: "t", challenge: "3eZbrw1aBm2rZgRNFdxV2595", type: "url_verification" },
);
const zoomValidation = delivery(
  {},
  { event: "endpoint.url_validation", payload: { plainToken: "qgg8vlvZRS6UYooatFL8Aw" } },
);

const discordSign: Recipe["sign"] = (sent, key, atMs) => {
  const timestamp = String(atMs / 1_000);
  return withHeaders(sent, {
    "x-signature-timestamp": timestamp,
    "x-signature-ed25519": sign(null, Buffer.from(timestamp + sent.body), key).toString("hex"),
  });
};
const discordPing = (name: string, body: unknown, reply: ReturnType<typeof answer>) =>
  caseOf({
    name, kind: "handshake", expect: { reply },
    secrets: [{ value: rawEd25519(KEYS.ed25519[0].public).toString("hex") }],
    request: discordSign(delivery({}, body), KEYS.ed25519[0].private, AT_MS),
  });

const challenge = (token: string): Sent => ({
  method: "GET",
  target: `/hooks/ch_1?hub.mode=subscribe&hub.verify_token=${token}&hub.challenge=1158201444`,
  headers: {},
  body: "",
});
const metaHandshakes = [
  caseOf({
    name: "the verification request",
    kind: "handshake",
    secrets: [{ value: "verify me", name: "verifyToken" }],
    request: challenge("verify+me"),
    expect: { reply: answer("1158201444") },
  }),
  caseOf({
    name: "a verification request with another verify token",
    kind: "handshake",
    secrets: [{ value: "verify me", name: "verifyToken" }],
    request: challenge("verify+you"),
    expect: { handshake: "none" },
  }),
];
const meta = (body: unknown, ...types: readonly string[]): Recipe => ({
  source: META,
  sent: delivery({}, body),
  sign: ofBody("x-hub-signature-256", "sha256="),
  events: types.map((type) => ({ type, id: null })),
  more: metaHandshakes,
});

/** Providers of messengers and customer support. */
export const chats: Readonly<Record<string, Recipe>> = {
  slack: {
    source: SLACK,
    sent: delivery({}, { type: "event_callback", event: { type: "app_mention" }, event_id: "Ev08MFMKH6" }),
    sign: slackSign,
    toleranceSeconds: 300,
    events: [{ type: "app_mention", id: "Ev08MFMKH6" }],
    more: [
      caseOf({
        name: "the example of Slack's documentation",
        kind: "accept",
        origin: "documented",
        source: SLACK,
        secrets: [{ value: "8f742231b10e8888abcd99yyyzzz85a5" }],
        arrivedAt: "2018-07-12T18:36:58.000Z",
        request: {
          headers: {
            ...FORM_TYPE,
            "x-slack-request-timestamp": "1531420618",
            "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
          },
          body: "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
        },
        expect: { verified: true },
      }),
      caseOf({
        name: "the URL verification",
        kind: "handshake",
        secrets: [{ value: "k" }],
        request: slackSign(slackChallenge, "k", AT_MS),
        expect: { reply: answer("3eZbrw1aBm2rZgRNFdxV2595") },
      }),
      caseOf({
        name: "a URL verification signed with another secret",
        kind: "handshake",
        secrets: [{ value: "k" }],
        request: slackSign(slackChallenge, "another", AT_MS),
        expect: { refused: "mismatch" },
      }),
    ],
  },
  discord: {
    source: "https://discord.com/developers/docs/events/webhook-events",
    secrets: publicSecrets(KEYS.ed25519, (pem) => rawEd25519(pem).toString("hex")),
    sent: delivery({}, { version: 1, type: 1, event: { type: "APPLICATION_AUTHORIZED", data: {} } }),
    sign: discordSign,
    events: [{ type: "APPLICATION_AUTHORIZED", id: null }],
    more: [
      discordPing("the PING to the events webhook", { version: 1, type: 0 }, answer("", { status: 204 })),
      discordPing(
        "the PING to the interactions endpoint",
        { id: "1", type: 1 },
        answer('{"type":1}', { contentType: "application/json" }),
      ),
      caseOf({
        name: "the PING with an invalid signature, which Discord sends as a test",
        kind: "handshake",
        secrets: [{ value: rawEd25519(KEYS.ed25519[0].public).toString("hex") }],
        request: discordSign(delivery({}, { id: "1", type: 1 }), KEYS.ed25519[1].private, AT_MS),
        expect: { refused: "mismatch" },
      }),
    ],
  },
  line: {
    source: "https://developers.line.biz/en/docs/messaging-api/verify-webhook-signature/",
    sent: delivery(
      {},
      { destination: "U1", events: [{ type: "message", webhookEventId: "01FZ74A0TDDPYRVKNK77" }] },
    ),
    sign: ofBody("x-line-signature", "", "sha256", "base64"),
    events: [{ type: "message", id: "01FZ74A0TDDPYRVKNK77" }],
    more: [
      caseOf({
        name: "the example of LINE's library",
        kind: "accept",
        origin: "documented",
        source: "https://github.com/line/line-bot-sdk-nodejs/blob/master/test/validate-signature.spec.ts",
        secrets: [{ value: "test_secret" }],
        request: {
          headers: { ...JSON_TYPE, "x-line-signature": "t7Hn4ZDHqs6e+wdvI5TyQIvzie0DmMUmuXEBqyyE/tM=" },
          body: '{"hello":"world"}',
        },
        expect: { verified: true },
      }),
    ],
  },
  telegram: {
    source: "https://core.telegram.org/bots/api#setwebhook",
    sent: delivery({}, { update_id: 10000, message: { text: "hello" } }),
    sign: (sent, key) => withHeaders(sent, { "x-telegram-bot-api-secret-token": key }),
    alter: (sent) => withHeaders(sent, { "x-telegram-bot-api-secret-token": "C6F1" }),
    uncovered: (sent) => ({ ...sent, body: sent.body.replace("hello", "altered") }),
    events: [{ type: "received", id: "10000" }],
  },
  viber: {
    source: "https://developers.viber.com/docs/api/rest-bot-api/#callbacks",
    sent: delivery({}, { event: "delivered", timestamp: 1457764197627, message_token: 4912661846655238 }),
    sign: ofBody("x-viber-content-signature"),
    events: [{ type: "delivered", id: null }],
    more: [
      caseOf({
        name: "the example of Viber's library",
        kind: "accept",
        origin: "documented",
        source: "https://github.com/Viber/viber-bot-node/blob/master/test/message/message-validator-test.js",
        secrets: [{ value: "44dafb7e0f40021e-61a47a1e6778d187-f2c5a676a07050b3" }],
        request: {
          headers: {
            ...JSON_TYPE,
            "x-viber-content-signature": "d21b343448c8aee33b8e93768ef6ceb64a6ba6163099973a2b8bd028fea510ef",
          },
          body: '{"event":"webhook","timestamp":4977069964384421269,"message_token":1478683725125}',
        },
        expect: { events: [{ type: "webhook", id: null }] },
      }),
    ],
  },
  whatsapp: meta(
    {
      object: "whatsapp_business_account",
      entry: [{ id: "1", changes: [{ field: "messages", value: {} }] }],
    },
    "messages",
  ),
  messenger: meta(
    {
      object: "page",
      entry: [
        { id: "1", messaging: [{ message: { mid: "m1" } }] },
        { id: "1", standby: [{}] },
      ],
    },
    "received",
    "received",
  ),
  instagram: meta(
    { object: "instagram", entry: [{ id: "1", changes: [{ field: "comments", value: {} }] }] },
    "received",
  ),
  facebook: meta(
    {
      object: "page",
      entry: [
        {
          id: "1",
          changes: [
            { field: "feed", value: {} },
            { field: "leadgen", value: {} },
          ],
        },
      ],
    },
    "feed",
    "leadgen",
  ),
  zoom: {
    source: "https://developers.zoom.us/docs/api/webhooks/",
    sent: delivery({}, { event: "meeting.started", event_ts: 1767225600000, payload: {} }),
    sign: zoomSign,
    events: [{ type: "meeting.started", id: null }],
    more: [
      caseOf({
        name: "the endpoint URL validation",
        kind: "handshake",
        secrets: [{ value: "k" }],
        request: zoomSign(zoomValidation, "k", AT_MS),
        expect: {
          reply: answer(
            json({
              plainToken: "qgg8vlvZRS6UYooatFL8Aw",
              encryptedToken: hmac("sha256", "k", "qgg8vlvZRS6UYooatFL8Aw", "hex"),
            }),
            { contentType: "application/json" },
          ),
        },
      }),
    ],
  },
  intercom: {
    source: "https://developers.intercom.com/docs/webhooks/setting-up-webhooks",
    sent: delivery(
      {},
      { type: "notification_event", id: "notif_78c122d0-23ba", topic: "contact.user.created" },
    ),
    sign: ofBody("x-hub-signature", "sha1=", "sha1"),
    events: [{ type: "contact.user.created", id: "notif_78c122d0-23ba" }],
    more: [headCheck()],
  },
  zendesk: {
    source: "https://developer.zendesk.com/documentation/webhooks/verifying/",
    sent: delivery(
      { "x-zendesk-webhook-invocation-id": "8350205582" },
      { type: "zen:event-type:user.created" },
    ),
    sign: (sent, key, atMs) => {
      const timestamp = new Date(atMs).toISOString().replace(".000", "");
      return withHeaders(sent, {
        "x-zendesk-webhook-signature-timestamp": timestamp,
        "x-zendesk-webhook-signature": hmac("sha256", key, timestamp + sent.body, "base64"),
      });
    },
    events: [{ type: "zen:event-type:user.created", id: "8350205582" }],
  },
};

function headCheck() {
  return caseOf({
    name: "the HEAD check of the URL",
    kind: "handshake",
    request: { method: "HEAD", headers: {}, body: "" },
    expect: { reply: answer("") },
  });
}
