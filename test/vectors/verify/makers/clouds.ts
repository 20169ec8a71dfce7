import { createPublicKey } from "node:crypto";
import { rs256 } from "./jwt.ts";
import { KEYS } from "./keys.ts";
import {
  answer,
  caseOf,
  delivery,
  hidden,
  hmac,
  json,
  type Recipe,
  type Sent,
  texts,
  withHeaders,
} from "./kit.ts";

const CODE = "512d38b6-c7b8-40c8-89fe-f46f9e9622b6";
const ID = "dde3ac43-a4d8-4c8b-8ff6-8e8a7ed1b3f1";
const EVENT_GRID =
  "https://learn.microsoft.com/en-us/azure/event-grid/end-point-validation-event-grid-events-schema";

const withCode = (sent: Sent, code: string): Sent => ({ ...sent, target: `/hooks/ch_1?code=${code}` });
const authorized = (sent: Sent, key: string): Sent => withHeaders(sent, { authorization: key });

const validation = delivery({ "aeg-event-type": "SubscriptionValidation" }, [
  {
    id: ID,
    eventType: "Microsoft.EventGrid.SubscriptionValidationEvent",
    data: { validationCode: CODE, validationUrl: "https://rp-eastus2.eventgrid.azure.net/" },
  },
]);

const GOOGLE_KEYS = "https://www.googleapis.com/oauth2/v3/certs";
const jwkOf = (pem: string, kid: string) => ({
  ...createPublicKey(pem).export({ format: "jwk" }),
  kid, alg: "RS256", use: "sig",
});

/** Push subscriptions of Google Cloud Pub/Sub. */
const pubsub: Recipe = {
  source: "https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions",
  secrets: texts(
    "push@ours.iam.gserviceaccount.com",
    "push-next@ours.iam.gserviceaccount.com",
    "push@another.iam.gserviceaccount.com",
  ),
  fetched: {
    [GOOGLE_KEYS]: json({ keys: [jwkOf(KEYS.rsa[1].public, "old"), jwkOf(KEYS.rsa[0].public, "new")] }),
  },
  sent: delivery(
    {},
    {
      message: {
        attributes: { key: "value" },
        data: "SGVsbG8gQ2xvdWQgUHViL1N1YiE=",
        messageId: "2070443601311540",
      },
      subscription: "projects/ours/subscriptions/mysubscription",
    },
  ),
  sign: (sent, email, atMs) => {
    const seconds = atMs / 1_000;
    const claims = {
      aud: "https://hooks.example.com/hooks/ch_1",
        azp: "113774264463038321964",
        sub: "113774264463038321964",
      email,
        email_verified: true,
        iss: "https://accounts.google.com",
        iat: seconds,
        exp: seconds + 3_600,
    };
    return withHeaders(sent, { authorization: `Bearer ${rs256(KEYS.rsa[0].private, "new", claims)}` });
  },
  alter: (sent) =>
    withHeaders(sent, { authorization: String(sent.headers.authorization).replace(/\.[^.]+\./, ".e30.") }),
  uncovered: (sent) => ({ ...sent, body: sent.body.replace("SGVsbG8g", "YWx0ZXJl") }),
  toleranceSeconds: 3_660,
  events: [{ type: "received", id: "2070443601311540" }],
  more: [
    caseOf({
      name: "a token signed with another key",
      kind: "wrong secret",
      secrets: [{ value: "push@ours.iam.gserviceaccount.com" }],
      request: withHeaders(delivery({}, { message: { messageId: "1" } }), {
        authorization: `Bearer ${rs256(KEYS.rsa[2].private, "new", {
          email: "push@ours.iam.gserviceaccount.com", email_verified: true,
          iss: "https://accounts.google.com", exp: 1_767_229_200,
        })}`,
      }),
      expect: { refused: "mismatch" },
    }),
  ],
};

/** Providers of cloud services and identity management. */
export const clouds: Readonly<Record<string, Recipe>> = {
  "google-pubsub": pubsub,
  gmail: {
    ...pubsub,
    source: "https://developers.google.com/workspace/gmail/api/guides/push",
    sent: delivery(
      {},
      {
        message: {
          data: "eyJlbWFpbEFkZHJlc3MiOiAidXNlckBleGFtcGxlLmNvbSIsICJoaXN0b3J5SWQiOiAiMTIzNDU2Nzg5MCJ9",
          messageId: "2070443601311540",
        },
        subscription: "projects/ours/subscriptions/gmail",
      },
    ),
  },
  "azure-event-grid": {
    source: EVENT_GRID,
    sent: delivery({ "aeg-event-type": "Notification" }, [
      { id: ID, eventType: "Microsoft.Storage.BlobCreated", subject: "/blobs/a", data: {} },
    ]),
    sign: withCode,
    alter: (sent) => withCode(sent, "another"),
    uncovered: hidden,
    events: [{ type: "Microsoft.Storage.BlobCreated", id: ID }],
    more: [
      caseOf({
        name: "the validation of the subscription",
        kind: "handshake",
        secrets: [{ value: "k" }],
        request: withCode(validation, "k"),
        expect: { reply: answer(json({ validationResponse: CODE }), { contentType: "application/json" }) },
      }),
      caseOf({
        name: "the validation with another code in the URL",
        kind: "handshake",
        secrets: [{ value: "k" }],
        request: withCode(validation, "another"),
        expect: { refused: "mismatch" },
      }),
    ],
  },
  "microsoft-graph": {
    source: "https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks",
    sent: delivery(
      {},
      {
        value: [
          { subscriptionId: "1", changeType: "created", clientState: "", resource: "me/messages/1" },
          { subscriptionId: "1", changeType: "updated", clientState: "", resource: "me/messages/2" },
        ],
      },
    ),
    sign: (sent, key) => ({
      ...sent,
      body: sent.body.replaceAll('"clientState":""', `"clientState":"${key}"`),
    }),
    // Alters only the first item, because all items must contain the secret.
    alter: (sent) => ({ ...sent, body: sent.body.replace('"clientState":"c6', '"clientState":"C6') }),
    uncovered: hidden,
    events: [
      { type: "created", id: null },
      { type: "updated", id: null },
    ],
    more: [
      caseOf({
        name: "the validation of the URL",
        kind: "handshake",
        request: {
          target: "/hooks/ch_1?validationToken=Validation%3A+Testing+client+application+reachability",
          headers: { "content-type": "text/plain" },
          body: "",
        },
        expect: { reply: answer("Validation: Testing client application reachability") },
      }),
    ],
  },
  okta: {
    source: "https://developer.okta.com/docs/concepts/event-hooks/",
    sent: delivery({}, { data: { events: [{ uuid: ID, eventType: "user.lifecycle.activate" }] } }),
    sign: authorized,
    alter: (sent) => authorized(sent, "another"),
    uncovered: hidden,
    events: [{ type: "user.lifecycle.activate", id: ID }],
    more: [
      caseOf({
        name: "the one-time verification",
        kind: "handshake",
        request: {
          method: "GET",
          headers: { "x-okta-verification-challenge": "this_is_a_random_string" },
          body: "",
        },
        expect: {
          reply: answer('{"verification":"this_is_a_random_string"}', { contentType: "application/json" }),
        },
      }),
    ],
  },
  auth0: {
    source: "https://auth0.com/docs/customize/log-streams/custom-log-streams",
    sent: delivery({}, [
      { log_id: "90020260101000000000000", data: { type: "s", date: "2026-01-01T00:00:00.000Z" } },
    ]),
    sign: authorized,
    alter: (sent) => authorized(sent, "another"),
    uncovered: hidden,
    events: [{ type: "s", id: "90020260101000000000000" }],
  },
  "google-calendar": {
    source: "https://developers.google.com/workspace/calendar/api/guides/push",
    sent: {
      ...delivery({ "x-goog-resource-state": "exists", "x-goog-message-number": "10" }, {}),
      body: "",
    },
    sign: (sent, key) => withHeaders(sent, { "x-goog-channel-token": key }),
    alter: (sent) => withHeaders(sent, { "x-goog-channel-token": "C6F1" }),
    uncovered: (sent) => withHeaders(sent, { "x-goog-message-number": "11" }),
    events: [{ type: "exists", id: null }],
  },
  "google-drive": {
    source: "https://developers.google.com/workspace/drive/api/guides/push",
    sent: {
      ...delivery({ "x-goog-resource-state": "change", "x-goog-message-number": "10" }, {}),
      body: "",
    },
    sign: (sent, key) => withHeaders(sent, { "x-goog-channel-token": key }),
    alter: (sent) => withHeaders(sent, { "x-goog-channel-token": "C6F1" }),
    uncovered: (sent) => withHeaders(sent, { "x-goog-message-number": "11" }),
    events: [{ type: "change", id: null }],
  },
  workos: {
    source: "https://workos.com/docs/events/data-syncing/webhooks",
    sent: delivery({}, { id: "event_01J44T8116Q5M0RYCFA6KWNXN9", event: "dsync.user.created", data: {} }),
    sign: (sent, key, atMs) => {
      const v1 = hmac("sha256", key, `${atMs}.${sent.body}`, "hex");
      return withHeaders(sent, { "workos-signature": `t=${atMs}, v1=${v1}` });
    },
    toleranceSeconds: 180,
    events: [{ type: "dsync.user.created", id: "event_01J44T8116Q5M0RYCFA6KWNXN9" }],
  },
};
