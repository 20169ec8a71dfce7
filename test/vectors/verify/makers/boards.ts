import { hs256 } from "./jwt.ts";
import {
  answer,
  caseOf,
  delivery,
  hidden,
  hmac,
  JSON_TYPE,
  json,
  ofBody,
  type Recipe,
  texts,
  URL_OF_CHANNEL,
  withHeaders,
} from "./kit.ts";

const ID = "01DBNAQTYR08NYE0SWYHRM6QKA";
const CHALLENGE = json({ challenge: "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P" });

/** Providers of planning, design and documentation tools. */
export const boards: Readonly<Record<string, Recipe>> = {
  asana: {
    source: "https://developers.asana.com/docs/webhooks-guide",
    sent: delivery({}, { events: [{ action: "changed", resource: { gid: "1337", resource_type: "task" } }] }),
    sign: ofBody("x-hook-signature"),
    events: [{ type: "changed", id: null }],
    more: [
      caseOf({
        name: "the handshake that delivers the secret",
        kind: "handshake",
        request: { headers: { "x-hook-secret": "b537207f20cbfa02357cf448134da559" }, body: "" },
        expect: {
          reply: answer("", { headers: { "x-hook-secret": "b537207f20cbfa02357cf448134da559" } }),
          captured: "b537207f20cbfa02357cf448134da559",
        },
      }),
    ],
  },
  trello: {
    source: "https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/",
    sent: delivery({}, { action: { id: "51f9424bcd6e040f3c002412", type: "updateCard" } }),
    sign: (sent, key) =>
      withHeaders(sent, { "x-trello-webhook": hmac("sha1", key, sent.body + URL_OF_CHANNEL, "base64") }),
    events: [{ type: "updateCard", id: "51f9424bcd6e040f3c002412" }],
    more: [
      caseOf({
        name: "the HEAD check of the URL",
        kind: "handshake",
        request: { method: "HEAD", headers: {}, body: "" },
        expect: { reply: answer("") },
      }),
    ],
  },
  notion: {
    source: "https://developers.notion.com/reference/webhooks",
    secrets: texts("secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl", "secret_next", "secret_other"),
    sent: delivery(
      {},
      { id: "367cba44-b6f3-4c92-81e7-6a2e9659efd4", type: "page.created", attempt_number: 1 },
    ),
    sign: ofBody("x-notion-signature", "sha256="),
    events: [{ type: "page.created", id: "367cba44-b6f3-4c92-81e7-6a2e9659efd4" }],
    more: [
      caseOf({
        name: "the verification token to a channel without a secret",
        kind: "wrong secret",
        request: delivery({}, { verification_token: "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl" }),
        expect: { refused: "no_secret" },
      }),
    ],
  },
  airtable: {
    source: "https://airtable.com/developers/web/api/webhooks-overview",
    secrets: texts("c2VjcmV0IG9uZQ==", "c2VjcmV0IHR3bw==", "c2VjcmV0IDAwMA=="),
    sent: delivery({}, { base: { id: "app00000000000000" }, webhook: { id: "ach00000000000000" } }),
    sign: (sent, key) =>
      withHeaders(sent, {
        "x-airtable-content-mac": `hmac-sha256=${hmac("sha256", Buffer.from(key, "base64"), sent.body, "hex")}`,
      }),
    events: [{ type: "received", id: null }],
  },
  monday: {
    source: "https://developer.monday.com/api-reference/reference/webhooks",
    sent: delivery({}, { event: { type: "create_pulse", triggerUuid: "7953895f3f2e4f24a2c2" } }),
    sign: (sent, key, atMs) => {
      const seconds = atMs / 1_000;
      return withHeaders(sent, {
        authorization: hs256(key, { accountId: 1, iat: seconds, exp: seconds + 300 }),
      });
    },
    alter: (sent) =>
      withHeaders(sent, { authorization: String(sent.headers.authorization).replace(/\.[^.]+\./, ".e30.") }),
    uncovered: hidden,
    toleranceSeconds: 360,
    events: [{ type: "create_pulse", id: "7953895f3f2e4f24a2c2" }],
    more: [
      caseOf({
        name: "the challenge",
        kind: "handshake",
        request: { headers: JSON_TYPE, body: CHALLENGE },
        expect: { reply: answer(CHALLENGE, { contentType: "application/json" }) },
      }),
    ],
  },
  clickup: {
    source: "https://developer.clickup.com/docs/webhooksignature",
    sent: delivery({}, { event: "taskCreated", task_id: "c0j", webhook_id: "4b67ac88" }),
    sign: ofBody("x-signature"),
    events: [{ type: "taskCreated", id: null }],
  },
  todoist: {
    source: "https://developer.todoist.com/api/v1/#tag/Webhooks",
    sent: delivery({ "x-todoist-delivery-id": ID }, { event_name: "item:added", event_data: {} }),
    sign: ofBody("x-todoist-hmac-sha256", "", "sha256", "base64"),
    events: [{ type: "item:added", id: ID }],
  },
  figma: {
    source: "https://developers.figma.com/docs/rest-api/webhooks/",
    sent: delivery({}, { event_type: "FILE_UPDATE", passcode: "", file_key: "zH0IPUw" }),
    sign: (sent, key) => ({ ...sent, body: sent.body.replace('"passcode":""', `"passcode":"${key}"`) }),
    alter: (sent) => ({ ...sent, body: sent.body.replace("c6f1", "C6F1") }),
    uncovered: hidden,
    events: [{ type: "FILE_UPDATE", id: null }],
  },
  smartsheet: {
    source: "https://developers.smartsheet.com/api/smartsheet/guides/webhooks/webhook-verification",
    sent: delivery({}, { nonce: "4b2ed20d", events: [{ objectType: "row", eventType: "updated", id: 1 }] }),
    sign: ofBody("smartsheet-hmac-sha256"),
    events: [{ type: "row", id: null }],
    more: [
      caseOf({
        name: "the verification challenge",
        kind: "handshake",
        request: delivery(
          { "smartsheet-hook-challenge": "d78dd1d3-01ce" },
          { challenge: "d78dd1d3-01ce", webhookId: 1 },
        ),
        expect: {
          reply: answer('{"smartsheetHookResponse":"d78dd1d3-01ce"}', {
            contentType: "application/json",
            headers: { "smartsheet-hook-response": "d78dd1d3-01ce" },
          }),
        },
      }),
    ],
  },
};
