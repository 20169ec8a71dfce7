import {
  AT_MS,
  answer,
  caseOf,
  delivery,
  type Digest,
  hmac,
  JSON_TYPE,
  ofBody,
  type Recipe,
  type Sent,
  withHeaders,
} from "./kit.ts";

const ATOM = { "content-type": "application/atom+xml" } as const;
const FEED =
  '<feed xmlns:yt="http://www.youtube.com/xml/schemas/2015" xmlns="http://www.w3.org/2005/Atom"><entry><id>yt:video:VIDEO_ID</id><title>Video</title></entry></feed>';
const MESSAGE_ID = "f1c2a387-161a-49f9-a165-0f21d7a4e1c4";

/** Signs time, a dot and the body, and puts time and signature into one header. */
const timed =
  (name: string, timeKey: string, signatureKey: string, digest: Digest, unitMs: number): Recipe["sign"] =>
  (sent, key, atMs) => {
    const time = String(atMs / unitMs);
    const signature = hmac("sha256", key, `${time}.${sent.body}`, digest);
    return withHeaders(sent, { [name]: `${timeKey}=${time},${signatureKey}=${signature}` });
  };

const twitchSign: Recipe["sign"] = (sent, key, atMs) => {
  const time = new Date(atMs).toISOString().replace("000Z", "000000000Z");
  const signature = hmac("sha256", key, MESSAGE_ID + time + sent.body, "hex");
  return withHeaders(sent, {
    "twitch-eventsub-message-id": MESSAGE_ID,
    "twitch-eventsub-message-timestamp": time,
    "twitch-eventsub-message-signature": `sha256=${signature}`,
  });
};
const twitchVerification = delivery(
  {
    "twitch-eventsub-message-type": "webhook_callback_verification",
    "twitch-eventsub-subscription-type": "channel.follow",
  },
  { challenge: "pogchamp-kappa-360noscope-vohiyo", subscription: {} },
);

const intentRequest = (mode: string): Sent => ({
  method: "GET",
  target: `/hooks/ch_1?hub.topic=https%3A%2F%2Fwww.youtube.com%2Fxml%2Ffeeds&hub.challenge=6127419804&hub.mode=${mode}&hub.lease_seconds=432000`,
  headers: {},
  body: "",
});
const webSubHandshakes = [
  caseOf({
    name: "the verification of intent to subscribe",
    kind: "handshake",
    request: intentRequest("subscribe"),
    expect: { reply: answer("6127419804") },
  }),
  caseOf({
    name: "an unsubscribe request, which anyone could have sent",
    kind: "handshake",
    request: intentRequest("unsubscribe"),
    expect: { handshake: "none" },
  }),
];

/** Providers of publishing, media and social networks. */
export const media: Readonly<Record<string, Recipe>> = {
  x: {
    source: "https://docs.x.com/x-api/webhooks/introduction",
    sent: delivery({}, { for_user_id: "2244994945", tweet_create_events: [] }),
    sign: ofBody("x-twitter-webhooks-signature", "sha256=", "sha256", "base64"),
    events: [{ type: "received", id: null }],
    more: [
      caseOf({
        name: "the challenge-response check",
        kind: "handshake",
        secrets: [{ value: "consumer secret" }],
        request: {
          method: "GET",
          target: "/hooks/ch_1?crc_token=MGUyNTEwZGUtNmFiNy00OTQ4&nonce=MjQ4",
          headers: {},
          body: "",
        },
        expect: {
          reply: answer(
            `{"response_token":"sha256=${hmac("sha256", "consumer secret", "MGUyNTEwZGUtNmFiNy00OTQ4", "base64")}"}`,
            { contentType: "application/json" },
          ),
        },
      }),
    ],
  },
  twitch: {
    source: "https://dev.twitch.tv/docs/eventsub/handling-webhook-events/",
    sent: delivery(
      {
        "twitch-eventsub-message-type": "notification",
        "twitch-eventsub-subscription-type": "channel.follow",
      },
      { subscription: { type: "channel.follow" }, event: { user_id: "1337" } },
    ),
    sign: twitchSign,
    toleranceSeconds: 600,
    events: [{ type: "channel.follow", id: MESSAGE_ID }],
    more: [
      caseOf({
        name: "the verification of the callback",
        kind: "handshake",
        secrets: [{ value: "s3cRe7s3cRe7" }],
        request: twitchSign(twitchVerification, "s3cRe7s3cRe7", AT_MS),
        expect: { reply: answer("pogchamp-kappa-360noscope-vohiyo") },
      }),
    ],
  },
  youtube: {
    source: "https://www.w3.org/TR/websub/#signature-validation",
    sent: { headers: ATOM, body: FEED },
    sign: ofBody("x-hub-signature", "sha1=", "sha1"),
    alter: (sent) => ({ ...sent, body: sent.body.replace("Video<", "Altered<") }),
    events: [{ type: "received", id: null }],
    more: webSubHandshakes,
  },
  websub: {
    source: "https://www.w3.org/TR/websub/#signature-validation",
    sent: { headers: ATOM, body: FEED },
    sign: ofBody("x-hub-signature", "sha256=", "sha256"),
    alter: (sent) => ({ ...sent, body: sent.body.replace("Video<", "Altered<") }),
    events: [{ type: "received", id: null }],
    more: [
      ...webSubHandshakes,
      ...(["sha1", "sha384", "sha512"] as const).map((method) =>
        caseOf({
          name: `a delivery signed with ${method}`,
          kind: "accept",
          secrets: [{ value: "k" }],
          request: ofBody("x-hub-signature", `${method}=`, method)({ headers: ATOM, body: FEED }, "k", AT_MS),
          expect: { events: [{ type: "received", id: null }] },
        }),
      ),
    ],
  },
  contentful: {
    source: "https://github.com/contentful/node-apps-toolkit/blob/master/src/requests/sign-request.ts",
    sent: {
      headers: {
        "content-type": "application/vnd.contentful.management.v1+json",
        "x-contentful-topic": "ContentManagement.Entry.publish",
      },
      body: '{"sys":{"type":"Entry","id":"1"}}',
    },
    sign: (sent, key, atMs) => {
      const names = ["x-contentful-signed-headers", "x-contentful-timestamp", "x-contentful-topic"];
      const headers: Record<string, string> = {
        ...sent.headers,
        "x-contentful-signed-headers": names.join(","),
        "x-contentful-timestamp": String(atMs),
      };
      const listed = names.map((name) => `${name}:${headers[name]}`).join(";");
      const signed = ["POST", "/hooks/ch_1", listed, sent.body].join("\n");
      return {
        ...sent,
        headers: { ...headers, "x-contentful-signature": hmac("sha256", key, signed, "hex") },
      };
    },
    events: [{ type: "ContentManagement.Entry.publish", id: null }],
  },
  sanity: {
    source: "https://www.sanity.io/docs/content-lake/webhooks",
    sent: delivery({ "sanity-operation": "update", "idempotency-key": MESSAGE_ID }, { _id: "resume" }),
    sign: timed("sanity-webhook-signature", "t", "v1", "base64url", 1),
    events: [{ type: "update", id: MESSAGE_ID }],
    more: [
      caseOf({
        name: "the example of Sanity's library",
        kind: "accept",
        origin: "documented",
        source: "https://github.com/sanity-io/webhook-toolkit/blob/main/test/signature.test.ts",
        secrets: [{ value: "test" }],
        request: {
          headers: {
            ...JSON_TYPE,
            "sanity-operation": "update",
            "idempotency-key": MESSAGE_ID,
            "sanity-webhook-signature": "t=1633519811129,v1=tLa470fx7qkLLEcMOcEUFuBbRSkGujyskxrNXcoh0N0",
          },
          body: '{"_id":"resume"}',
        },
        expect: { events: [{ type: "update", id: MESSAGE_ID }] },
      }),
    ],
  },
  ghost: {
    source:
      "https://github.com/TryGhost/Ghost/blob/main/ghost/core/core/server/services/webhooks/webhook-trigger.js",
    sent: delivery({}, { post: { current: { id: "1" }, previous: {} } }),
    sign: (sent, key, atMs) =>
      withHeaders(sent, {
        "x-ghost-signature": `sha256=${hmac("sha256", key, `${sent.body}${atMs}`, "hex")}, t=${atMs}`,
      }),
    toleranceSeconds: 300,
    events: [{ type: "received", id: null }],
  },
  webflow: {
    source: "https://developers.webflow.com/data/docs/working-with-webhooks",
    sent: delivery({}, { triggerType: "form_submission", payload: { id: "1" } }),
    sign: (sent, key, atMs) =>
      withHeaders(sent, {
        "x-webflow-timestamp": String(atMs),
        "x-webflow-signature": hmac("sha256", key, `${atMs}:${sent.body}`, "hex"),
      }),
    toleranceSeconds: 300,
    events: [{ type: "form_submission", id: null }],
  },
  discourse: {
    source:
      "https://meta.discourse.org/t/configure-webhooks-that-trigger-on-discourse-events-to-integrate-with-external-services/49045",
    sent: delivery(
      { "x-discourse-event": "post_created", "x-discourse-event-id": "1234" },
      { post: { id: 1 } },
    ),
    sign: ofBody("x-discourse-event-signature", "sha256="),
    events: [{ type: "post_created", id: null }],
  },
  mux: {
    source: "https://www.mux.com/docs/core/verify-webhook-signatures",
    sent: delivery(
      {},
      { id: "3a56ac3d-33da-4366-855b-f592d898409d", type: "video.asset.ready", attempts: [] },
    ),
    sign: timed("mux-signature", "t", "v1", "hex", 1_000),
    toleranceSeconds: 300,
    events: [{ type: "video.asset.ready", id: "3a56ac3d-33da-4366-855b-f592d898409d" }],
  },
  pusher: {
    source: "https://pusher.com/docs/channels/server_api/webhooks/",
    sent: delivery(
      { "x-pusher-key": "278d425bdf160c739803" },
      {
        time_ms: 1327078148132,
        events: [{ name: "channel_occupied", channel: "a" }, { name: "member_added" }],
      },
    ),
    sign: ofBody("x-pusher-signature"),
    events: [
      { type: "channel_occupied", id: null },
      { type: "member_added", id: null },
    ],
  },
  elevenlabs: {
    source: "https://elevenlabs.io/docs/product-guides/administration/webhooks",
    sent: delivery({}, { type: "post_call_transcription", event_timestamp: 1739537297, data: {} }),
    sign: timed("elevenlabs-signature", "t", "v0", "hex", 1_000),
    toleranceSeconds: 1_800,
    events: [{ type: "post_call_transcription", id: null }],
  },
};
