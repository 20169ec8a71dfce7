import { createPrivateKey, generateKeyPairSync, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type HookRequest, startHookServer } from "../support/hook-server.ts";
import { opened } from "../support/opened.ts";
import {
  bySignature,
  crc,
  hmac,
  json,
  meta,
  published,
  secrets,
  signed,
  slack,
} from "./handshake-support.ts";

const certified: { readonly privateKey: string; readonly certificate: string } = JSON.parse(
  readFileSync(new URL("../vectors/verify/certificate.json", import.meta.url), "utf8"),
);
const visited: string[] = [];
const server = opened(() =>
  startHookServer({
    async fetchPinned(url) {
      visited.push(url);
      if (url.includes("away")) throw new Error("away");
      return Buffer.from(certified.certificate);
    },
  }),
);

describe("a webhook handshake", () => {
  const zoomToken = "qgg8vlvZRS6UYooatFL8Aw";
  const crcOf = (text: string) => hmac("s3cret", text).toString("base64");
  it.each<[string, object, object, HookRequest, object]>([
    [
      "Slack",
      bySignature,
      slack,
      signed(json({ type: "url_verification", challenge: "3eZbrw" })),
      { status: 200, text: "3eZbrw", type: "text/plain; charset=utf-8" },
    ],
    [
      "Meta",
      bySignature,
      meta,
      {
        method: "GET",
        query: "?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=my+verify+token",
      },
      { status: 200, text: "1158201444", type: "text/plain; charset=utf-8" },
    ],
    [
      "Microsoft Graph",
      { scheme: "token", in: "body", name: "$.value[*].clientState" },
      {
        title: "Endpoint validation",
        when: { method: "POST", all: [{ in: "query", name: "validationToken" }] },
        requireVerified: false,
        respond: { body: "{{query:validationToken}}" },
      },
      { query: "?validationToken=Validation%3a+Testing+%3Cb%3E", headers: { "content-type": "text/plain" } },
      { status: 200, text: "Validation: Testing <b>", type: "text/plain; charset=utf-8" },
    ],
    [
      "Zoom",
      bySignature,
      {
        title: "URL validation",
        when: { method: "POST", all: [{ in: "body", name: "$.event", equals: "endpoint.url_validation" }] },
        respond: {
          contentType: "application/json",
          body: '{"plainToken":"{{body:$.payload.plainToken}}","encryptedToken":"{{body:$.payload.plainToken | hmac-sha256}}"}',
        },
      },
      signed(json({ event: "endpoint.url_validation", payload: { plainToken: zoomToken } })),
      {
        status: 200,
        text: json({ plainToken: zoomToken, encryptedToken: hmac("s3cret", zoomToken).toString("hex") }),
        type: "application/json; charset=utf-8",
      },
    ],
    [
      "X",
      bySignature,
      crc,
      { method: "GET", query: "?crc_token=MDk5YjE5" },
      {
        status: 200,
        text: `{"response_token":"sha256=${crcOf("MDk5YjE5")}"}`,
        type: "application/json; charset=utf-8",
      },
    ],
    [
      "Okta",
      { scheme: "token", name: "Authorization" },
      {
        title: "One-time verification",
        when: { method: "GET", all: [{ in: "header", name: "x-okta-verification-challenge" }] },
        requireVerified: false,
        respond: {
          contentType: "application/json",
          body: '{"verification":"{{header:X-Okta-Verification-Challenge}}"}',
        },
      },
      { method: "GET", headers: { "x-okta-verification-challenge": 'a"b' } },
      { status: 200, text: '{"verification":"a\\"b"}', type: "application/json; charset=utf-8" },
    ],
    [
      "Dropbox",
      bySignature,
      {
        title: "Verification request",
        when: { method: "GET", all: [{ in: "query", name: "challenge" }] },
        requireVerified: false,
        respond: { body: "{{query:challenge}}" },
      },
      { method: "GET", query: "?challenge=%3Cscript%3E" },
      { status: 200, text: "<script>", type: "text/plain; charset=utf-8" },
    ],
    [
      "Twitch",
      bySignature,
      {
        title: "Callback verification",
        when: {
          method: "POST",
          all: [
            { in: "header", name: "Twitch-Eventsub-Message-Type", equals: "webhook_callback_verification" },
          ],
        },
        respond: { body: "{{body:$.challenge}}" },
      },
      signed(json({ challenge: "pogchamp" }), {
        "twitch-eventsub-message-type": "webhook_callback_verification",
      }),
      { status: 200, text: "pogchamp", type: "text/plain; charset=utf-8" },
    ],
    [
      "WebSub",
      bySignature,
      {
        title: "Verification of intent",
        when: {
          method: "GET",
          all: [
            { in: "query", name: "hub.mode", equals: "subscribe" },
            { in: "query", name: "hub.topic" },
          ],
        },
        requireVerified: false,
        respond: { body: "{{query:hub.challenge}}" },
      },
      { method: "GET", query: "?hub.mode=subscribe&hub.topic=https%3A%2F%2Fa.example%2Ff&hub.challenge=c1" },
      { status: 200, text: "c1", type: "text/plain; charset=utf-8" },
    ],
    [
      "Azure Event Grid",
      { scheme: "token", in: "query", name: "code" },
      {
        title: "Validation",
        when: {
          method: "POST",
          all: [{ in: "header", name: "aeg-event-type", equals: "SubscriptionValidation" }],
        },
        respond: {
          contentType: "application/json",
          body: '{"validationResponse":"{{body:$[0].data.validationCode}}"}',
        },
      },
      {
        query: "?code=s3cret",
        headers: { "aeg-event-type": "SubscriptionValidation" },
        body: json([{ data: { validationCode: "512d38b6" } }]),
      },
      { status: 200, text: '{"validationResponse":"512d38b6"}', type: "application/json; charset=utf-8" },
    ],
    [
      "Trello",
      bySignature,
      { title: "Creation", when: { method: "HEAD" }, requireVerified: false },
      { method: "HEAD" },
      { status: 200, text: "", type: "text/plain; charset=utf-8" },
    ],
    [
      "a sender that uses PUT",
      bySignature,
      {
        title: "Verification",
        when: { method: "PUT", all: [{ in: "header", name: "x-challenge" }] },
        requireVerified: false,
        respond: { status: 202, headers: { "X-Response": "{{header:x-challenge | upper}}" }, body: "ok" },
      },
      { method: "PUT", headers: { "x-challenge": "abc" }, body: "{}" },
      { status: 202, text: "ok", "x-response": "ABC" },
    ],
    [
      "a sender that uses OPTIONS",
      bySignature,
      {
        title: "Preflight",
        when: {
          method: "OPTIONS",
          all: [
            { in: "header", name: "x-ask" },
            { in: "query", name: "no", absent: true },
          ],
        },
        requireVerified: false,
        respond: { status: 204, headers: { "X-Answer": "{{query:none | optional}}yes" } },
      },
      { method: "OPTIONS", headers: { "x-ask": "1" } },
      { status: 204, text: "", "x-answer": "yes", type: null },
    ],
  ])("from %s receives the documented reply", async (_, verification, handshake, request, expected) => {
    const { status, text, type, ...headers }: Record<string, unknown> = { ...expected };
    const { id } = await server.open({ verification, secrets, handshakes: [handshake] });
    const answer = await server.send(id, request);
    expect([answer.status, answer.text]).toEqual([status, text]);
    if (type !== undefined) expect(answer.headers.get("content-type")).toBe(type);
    for (const [name, value] of Object.entries(headers)) expect(answer.headers.get(name)).toBe(value);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  it("from Discord (PING) is answered if its signature is valid, and otherwise rejected with 401", async () => {
    const pair = generateKeyPairSync("ed25519");
    const key = pair.publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
    const { id } = await server.open({
      verification: {
        scheme: "asymmetric",
        algorithm: "ed25519",
        name: "X-Signature-Ed25519",
        keys: { from: "secrets" },
        template: "{{timestamp}}{{body}}",
        timestamp: { source: { in: "header", name: "X-Signature-Timestamp" } },
        toleranceSeconds: 300,
      },
      secrets: [{ value: key }],
      handshakes: [
        {
          title: "PING",
          when: { method: "POST", all: [{ in: "body", name: "$.type", equals: "1" }] },
          respond: { contentType: "application/json", body: '{"type":1}' },
        },
      ],
    });
    const send = (body: string, text = body) => {
      const time = String(Math.floor(Date.now() / 1_000));
      const signature = sign(null, Buffer.from(time + text), pair.privateKey).toString("hex");
      return server.send(id, {
        body,
        headers: { "x-signature-ed25519": signature, "x-signature-timestamp": time },
      });
    };
    expect(await send('{"type":1}')).toMatchObject({ status: 200, text: '{"type":1}' });
    expect(await send('{"type":1}', "{}")).toMatchObject({ status: 401 });
    expect(await send('{"type":0,"event":{"type":"1"}}')).toMatchObject(published);
  });

  it("from Amazon SNS is verified with its certificate, and the confirmation URL in it is called", async () => {
    const parameters = {
      of: "json",
      names: ["Message", "MessageId", "SubscribeURL", "Subject", "Timestamp", "Token", "TopicArn", "Type"],
      pair: "{{name}}\n{{value}}\n",
    };
    const { id } = await server.open({
      verification: {
        scheme: "asymmetric",
        in: "body",
        name: "$.Signature",
        encoding: "base64",
        algorithmFrom: {
          source: { in: "body", name: "$.SignatureVersion" },
          values: { "1": "rsa-sha1", "2": "rsa-sha256" },
        },
        keys: {
          from: "request",
          source: { in: "body", name: "$.SigningCertURL" },
          pinned: ["https://sns.*.amazonaws.com/SimpleNotificationService-*.pem"],
        },
        template: "{{parameters}}",
        parameters,
        deliveryId: { in: "body", name: "$.MessageId" },
        signsBody: false,
        allowWeak: true,
      },
      readAs: "application/json",
      handshakes: [
        {
          title: "Subscription confirmation",
          when: {
            method: "POST",
            all: [
              { in: "header", name: "x-amz-sns-message-type", equals: "SubscriptionConfirmation" },
              { in: "body", name: "$.Type", equals: "SubscriptionConfirmation" },
            ],
          },
          visit: { in: "body", name: "$.SubscribeURL", pinned: ["https://sns.*.amazonaws.com/?*"] },
        },
      ],
    });
    const send = (more: Record<string, string>, type: string, signAs: "1" | "2" = "2") => {
      const message: Record<string, string> = {
        Message: "m\n1",
        MessageId: "i1",
        Type: type,
        TopicArn: "a",
        ...more,
      };
      const text = parameters.names
        .flatMap((name) => (name in message ? [`${name}\n${message[name]}\n`] : []))
        .join("");
      const key = createPrivateKey(certified.privateKey);
      const Signature = sign(signAs === "1" ? "sha1" : "sha256", Buffer.from(text), key).toString("base64");
      const SigningCertURL = "https://sns.eu-1.amazonaws.com/SimpleNotificationService-a.pem";
      return server.send(id, {
        body: json({ ...message, SignatureVersion: signAs, Signature, SigningCertURL }),
        headers: { "content-type": "text/plain; charset=UTF-8", "x-amz-sns-message-type": type },
      });
    };
    const subscribe = {
      SubscribeURL:
        "https://sns.eu-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=arn:aws:sns:a&Token=t",
      Token: "t",
    };
    expect((await send(subscribe, "SubscriptionConfirmation")).status).toBe(200);
    expect(visited).toContain(subscribe.SubscribeURL);
    const foreign = { SubscribeURL: "https://evil.test/?Action=ConfirmSubscription", Token: "t" };
    expect((await send(foreign, "SubscriptionConfirmation")).status).toBe(401);
    expect(visited).not.toContain(foreign.SubscribeURL);
    const away = { SubscribeURL: "https://sns.eu-1.amazonaws.com/?away", Token: "t" };
    expect((await send(away, "SubscriptionConfirmation")).status).toBe(503);
    for (const version of ["1", "2"] as const) {
      const notified = await send({ MessageId: `n${version}` }, "Notification", version);
      expect(notified).toMatchObject(published);
      expect(JSON.parse(notified.text).events[0].id).toBe(`n${version}/0`);
    }
  });
});
