import {
  answer,
  basic,
  caseOf,
  delivery,
  hidden,
  hmac,
  JSON_TYPE,
  ofBody,
  type Recipe,
  type Sent,
  texts,
  URL_OF_CHANNEL,
  withHeaders,
} from "./kit.ts";

const ID = "01DBNAQTYR08NYE0SWYHRM6QKA";

/** Stripe's scheme, which other providers also use. The header contains the signed time and the signature. */
const stripeLike =
  (name: string): Recipe["sign"] =>
  (sent, key, atMs) => {
    const t = String(atMs / 1_000);
    return withHeaders(sent, { [name]: `t=${t},v1=${hmac("sha256", key, `${t}.${sent.body}`, "hex")}` });
  };

const get = (query: string): Sent => ({
  method: "GET",
  target: `/hooks/ch_1?${query}`,
  headers: {},
  body: "",
});

/** Providers of sales, scheduling, file sharing and document signing. */
export const work: Readonly<Record<string, Recipe>> = {
  hubspot: {
    source: "https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests",
    secrets: texts("yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy", "next", "other"),
    sent: delivery({}, [
      { eventId: 1, subscriptionType: "contact.creation", attemptNumber: 0, objectId: 123 },
    ]),
    sign: (sent, key, atMs) => {
      const signed = `POST${URL_OF_CHANNEL}${sent.body}${atMs}`;
      return withHeaders(sent, {
        "x-hubspot-request-timestamp": String(atMs),
        "x-hubspot-signature-v3": hmac("sha256", key, signed, "base64"),
      });
    },
    toleranceSeconds: 300,
    events: [{ type: "contact.creation", id: null }],
  },
  salesforce: {
    source: "https://help.salesforce.com/s/articleView?id=sf.named_credentials_about.htm",
    sent: delivery({}, { object: "Account", recordId: "001xx000003DGb2AAG" }),
    sign: (sent, key) => withHeaders(sent, { authorization: `Bearer ${key}` }),
    alter: (sent) => withHeaders(sent, { authorization: "Bearer c6f1" }),
    uncovered: hidden,
    events: [{ type: "received", id: null }],
  },
  typeform: {
    source: "https://www.typeform.com/developers/webhooks/secure-your-webhooks/",
    sent: delivery({}, { event_id: ID, event_type: "form_response" }),
    sign: ofBody("typeform-signature", "sha256=", "sha256", "base64"),
    events: [{ type: "form_response", id: ID }],
  },
  calendly: {
    source: "https://developer.calendly.com/api-docs/4c305798a61d3-webhook-signatures",
    sent: delivery({}, { event: "invitee.created", payload: {} }),
    sign: stripeLike("calendly-webhook-signature"),
    toleranceSeconds: 180,
    events: [{ type: "invitee.created", id: null }],
  },
  docusign: {
    source: "https://developers.docusign.com/platform/webhooks/connect/hmac/",
    sent: delivery({}, { event: "envelope-completed", data: { envelopeId: "1" } }),
    sign: (sent, key) =>
      withHeaders(sent, {
        "x-docusign-signature-1": hmac("sha256", "another active key", sent.body, "base64"),
        "x-docusign-signature-2": hmac("sha256", key, sent.body, "base64"),
      }),
    events: [{ type: "envelope-completed", id: null }],
  },
  dropbox: {
    source: "https://www.dropbox.com/developers/reference/webhooks",
    sent: delivery({}, { list_folder: { accounts: ["dbid:AAH4f99T0taONIb"] } }),
    sign: ofBody("x-dropbox-signature"),
    events: [{ type: "received", id: null }],
    more: [
      caseOf({
        name: "the challenge",
        kind: "handshake",
        request: get("challenge=abc123"),
        expect: { reply: answer("abc123") },
      }),
    ],
  },
  box: {
    source: "https://developer.box.com/guides/webhooks/v2/signatures-v2/",
    sent: delivery({}, { type: "webhook_event", id: "0f2bc5dc-7a4b", trigger: "FILE.UPLOADED" }),
    sign: (sent, key, atMs) => {
      const timestamp = new Date(atMs).toISOString();
      return withHeaders(sent, {
        "box-delivery-timestamp": timestamp,
        "box-signature-primary": hmac("sha256", "the primary key", sent.body + timestamp, "base64"),
        "box-signature-secondary": hmac("sha256", key, sent.body + timestamp, "base64"),
      });
    },
    toleranceSeconds: 600,
    events: [{ type: "FILE.UPLOADED", id: "0f2bc5dc-7a4b" }],
    more: (["SamplePrimaryKey", "SampleSecondaryKey"] as const).map(boxExample),
  },
  pipedrive: {
    source: "https://pipedrive.readme.io/docs/guide-for-webhooks-v2",
    secrets: texts("inlet:9f2c41", "inlet:77aa0b", "inlet:000000"),
    sent: delivery({}, { meta: { action: "change", entity: "deal", attempt: 1 }, data: {}, previous: {} }),
    sign: basic,
    alter: (sent) => basic(sent, "inlet:9f2c42"),
    uncovered: hidden,
    events: [{ type: "deal", id: null }],
  },
  "cal-com": {
    source: "https://cal.com/docs/developing/guides/automation/webhooks",
    sent: delivery(
      {},
      { triggerEvent: "BOOKING_CREATED", createdAt: "2026-01-01T00:00:00.000Z", payload: {} },
    ),
    sign: ofBody("x-cal-signature-256"),
    events: [{ type: "BOOKING_CREATED", id: null }],
  },
  tally: {
    source: "https://tally.so/help/webhooks",
    sent: delivery({}, { eventId: "a4cb511e-d513-4fa5-baee-b815d718dfd1", eventType: "FORM_RESPONSE" }),
    sign: ofBody("tally-signature", "", "sha256", "base64"),
    events: [{ type: "FORM_RESPONSE", id: "a4cb511e-d513-4fa5-baee-b815d718dfd1" }],
  },
  webex: {
    source: "https://developer.webex.com/docs/api/guides/webhooks",
    sent: delivery({}, { id: "Y2lzY28", resource: "messages", event: "created", data: {} }),
    sign: ofBody("x-spark-signature", "", "sha1"),
    events: [{ type: "messages", id: null }],
  },
  strava: {
    source: "https://developers.strava.com/docs/webhooks/",
    secrets: null,
    sent: delivery({}, { object_type: "activity", aspect_type: "create", object_id: 1360128428 }),
    sign: (sent) => sent,
    uncovered: hidden,
    events: [{ type: "activity", id: null }],
    more: (["STRAVA", "another"] as const).map((token) =>
      caseOf({
        name: token === "STRAVA" ? "the validation of the callback" : "a validation with another verify token",
        kind: "handshake",
        secrets: [{ value: "STRAVA", name: "verifyToken" }],
        request: get(
          `hub.verify_token=${token}&hub.challenge=15f7d1a91c1f40f8a748fd134752feb3&hub.mode=subscribe`,
        ),
        expect:
          token === "STRAVA"
            ? {
                reply: answer('{"hub.challenge":"15f7d1a91c1f40f8a748fd134752feb3"}', {
                  contentType: "application/json",
                }),
              }
            : { handshake: "none" },
      }),
    ),
  },
  segment: {
    source: "https://segment.com/docs/connections/destinations/catalog/actions-webhook/",
    sent: delivery({}, { messageId: "api-1iTr", type: "track", event: "Signed Up" }),
    sign: ofBody("x-signature", "", "sha1"),
    events: [{ type: "track", id: "api-1iTr" }],
  },
};

/** Creates a case with Box's example, which is signed with two keys. One valid signature is sufficient. */
function boxExample(key: string) {
  return caseOf({
    name: `the example of Box's library with ${key}`,
    kind: "accept",
    origin: "documented",
    source: "https://github.com/box/box-node-sdk/blob/main/docs/webhooks.md",
    secrets: [{ value: key }],
    arrivedAt: "2020-01-01T07:05:00.000Z",
    request: {
      headers: {
        ...JSON_TYPE,
        "box-delivery-id": "f96bb54b-ee16-4fc5-aa65-8c2d9e5b546f",
        "box-delivery-timestamp": "2020-01-01T00:00:00-07:00",
        "box-signature-algorithm": "HmacSHA256",
        "box-signature-primary": "6TfeAW3A1PASkgboxxA5yqHNKOwFyMWuEXny/FPD5hI=",
        "box-signature-secondary": "v+1CD1Jdo3muIcbpv5lxxgPglOqMfsNHPV899xWYydo=",
        "box-signature-version": "1",
      },
      body: '{"type":"webhook_event","webhook":{"id":"1234567890"},"trigger":"FILE.UPLOADED","source":{"id":"1234567890","type":"file","name":"Test.txt"}}',
    },
    expect: { verified: true },
  });
}
