import { createHash, createHmac, createPrivateKey, generateKeyPairSync, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type HookRequest, type HookServer, startHookServer } from "../../support/hook-server.ts";

const certified: { readonly privateKey: string; readonly certificate: string } = JSON.parse(
  readFileSync(new URL("../../vectors/verify/certificate.json", import.meta.url), "utf8"),
);
let server: HookServer;
const visited: string[] = [];
beforeAll(async () => {
  server = await startHookServer({
    async fetchPinned(url) {
      visited.push(url);
      if (url.includes("away")) throw new Error("away");
      return Buffer.from(certified.certificate);
    },
  });
});
afterAll(() => server?.[Symbol.asyncDispose]());

const hmac = (secret: string, text: string, algorithm = "sha256") =>
  createHmac(algorithm, secret).update(text).digest();
const json = (value: unknown): string => JSON.stringify(value);
const secrets = [{ value: "s3cret" }, { value: "my verify token", name: "verifyToken" }];
const bySignature = { scheme: "hmac", name: "x-sig" };
const signed = (body: string, headers: Record<string, string> = {}): HookRequest => ({
  body,
  headers: { "x-sig": hmac("s3cret", body).toString("hex"), ...headers },
});
const published = { status: 200, text: expect.stringContaining('"published":1') };

/** As providers document them. */
const slack = {
  title: "URL verification",
  when: { method: "POST", all: [{ in: "body", name: "$.type", equals: "url_verification" }] },
  respond: { body: "{{body:$.challenge}}" },
};
const meta = {
  title: "Verification request",
  when: {
    method: "GET",
    all: [
      { in: "query", name: "hub.mode", equals: "subscribe" },
      { in: "query", name: "hub.verify_token", equalsSecret: "verifyToken" },
    ],
  },
  requireVerified: false,
  respond: { body: "{{query:hub.challenge}}" },
};
const asana = {
  title: "Handshake",
  when: { method: "POST", all: [{ in: "header", name: "X-Hook-Secret" }] },
  requireVerified: false,
  captureSecret: { in: "header", name: "X-Hook-Secret" },
  respond: { headers: { "X-Hook-Secret": "{{header:X-Hook-Secret}}" } },
};
const crc = {
  title: "CRC",
  when: { method: "GET", all: [{ in: "query", name: "crc_token" }] },
  requireVerified: false,
  respond: {
    contentType: "application/json",
    body: '{"response_token":"sha256={{query:crc_token | hmac-sha256 | base64}}"}',
  },
};

describe("a handshake that is answered as its provider asks", () => {
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
      "a PUT, in a header and a body",
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
      "an OPTIONS without a body",
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
  ])("%s", async (_, verification, handshake, request, expected) => {
    const { status, text, type, ...headers }: Record<string, unknown> = { ...expected };
    const { id } = await server.open({ verification, secrets, handshakes: [handshake] });
    const answer = await server.send(id, request);
    expect([answer.status, answer.text]).toEqual([status, text]);
    if (type !== undefined) expect(answer.headers.get("content-type")).toBe(type);
    for (const [name, value] of Object.entries(headers)) expect(answer.headers.get(name)).toBe(value);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  it("Discord: a PING is answered once it is verified, and a wrong signature with 401", async () => {
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

  it("Amazon SNS: a confirmation is verified by its certificate, then its address is called", async () => {
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
    const elsewhere = { SubscribeURL: "https://evil.test/?Action=ConfirmSubscription", Token: "t" };
    expect((await send(elsewhere, "SubscriptionConfirmation")).status).toBe(401);
    expect(visited).not.toContain(elsewhere.SubscribeURL);
    const away = { SubscribeURL: "https://sns.eu-1.amazonaws.com/?away", Token: "t" };
    expect((await send(away, "SubscriptionConfirmation")).status).toBe(503);
    for (const version of ["1", "2"] as const) {
      const notified = await send({ MessageId: `n${version}` }, "Notification", version);
      expect(notified).toMatchObject(published);
      expect(JSON.parse(notified.text).events[0].id).toBe(`n${version}/0`);
    }
  });
});

describe("a secret that a handshake brings", () => {
  it("is captured once, while the channel has none, and verifies all later deliveries", async () => {
    const { id, appId, state } = await server.open({
      verification: { scheme: "hmac", name: "X-Hook-Signature" },
      handshakes: [asana],
    });
    expect(state).toBe("needsSetup");
    const shake = (secret: string) => server.send(id, { headers: { "x-hook-secret": secret }, body: "{}" });
    const event = {
      body: '{"events":[]}',
      headers: { "x-hook-signature": hmac("b537", '{"events":[]}').toString("hex") },
    };
    expect((await server.send(id, event)).status).toBe(401);

    const first = await shake("b537");
    expect([first.status, first.headers.get("x-hook-secret")]).toEqual([200, "b537"]);
    expect((await server.spine.api.call.get(`/apps/${appId}/channels/${id}`)).state).toBe("active");
    expect(await server.send(id, event)).toMatchObject(published);
    // Its sender has not heard the answer and asks again; nobody else is told or kept.
    expect((await shake("b537")).headers.get("x-hook-secret")).toBe("b537");
    const other = await shake("other");
    expect([other.status, other.headers.get("x-hook-secret")]).toEqual([401, null]);
    expect(await server.send(id, event)).toMatchObject(published);
    const audit = await server.spine.api.call.get("/audit");
    expect(audit.filter(({ fields }: { fields: string[] }) => fields.includes("config.secrets")).length).toBe(
      1,
    );
  });

  it("is captured once when several come at once", async () => {
    const { id } = await server.open({ verification: bySignature, handshakes: [asana] });
    const shake = (secret: string) => server.send(id, { headers: { "x-hook-secret": secret }, body: "{}" });
    const answers = await Promise.all([shake("a1"), shake("b2"), shake("c3")]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  });

  it("may stand in the body, and is refused when its scheme cannot use it", async () => {
    const notion = {
      title: "Verification token",
      when: {
        method: "POST",
        all: [
          { in: "body", name: "$.verification_token" },
          { in: "body", name: "$.type", absent: true },
        ],
      },
      requireVerified: false,
      captureSecret: { in: "body", name: "$.verification_token" },
    };
    const inHex = { ...bySignature, key: { encoding: "hex" } };
    const { id } = await server.open({ verification: inHex, handshakes: [notion] });
    expect((await server.send(id, { body: '{"verification_token":"secret_x"}' })).status).toBe(401);
    expect((await server.send(id, { body: '{"verification_token":"00ff"}' })).status).toBe(200);
    const body = '{"verification_token":"00ff","type":{"a":1}}';
    const headers = { "x-sig": createHmac("sha256", Buffer.from("00ff", "hex")).update(body).digest("hex") };
    expect(await server.send(id, { body, headers })).toMatchObject(published);
  });

  it("is not captured while handshakes are not allowed", async () => {
    const { id } = await server.open({
      verification: bySignature,
      handshakes: [asana],
      allowHandshakes: "never",
    });
    expect((await server.send(id, { headers: { "x-hook-secret": "a" }, body: "{}" })).status).toBe(401);
  });
});

describe("a handshake", () => {
  it("does not match a delivery that looks like it", async () => {
    const { id } = await server.open({
      verification: bySignature,
      secrets,
      handshakes: [slack, asana, meta, crc],
    });
    for (const body of [
      json({ type: "event_callback", text: "url_verification" }),
      json({ type: ["url_verification"] }),
      json({ event: { type: "url_verification" } }),
      json("url_verification"),
    ]) {
      expect([body, await server.send(id, signed(body))]).toEqual([
        body,
        expect.objectContaining({ status: 200 }),
      ]);
      expect(
        (await server.send(id, { ...signed(body), query: "?crc_token=a&hub.mode=subscribe" })).text,
      ).toContain("received");
    }
  });

  it("that must be verified is refused with 401 when it is not signed", async () => {
    const { id } = await server.open({ verification: bySignature, secrets, handshakes: [slack] });
    const body = json({ type: "url_verification", challenge: "c" });
    expect(await server.send(id, { body })).toMatchObject({
      status: 401,
      text: expect.not.stringContaining("challenge"),
    });
  });

  it("that must be verified is not answered unverified by a channel in shadow mode", async () => {
    const { id } = await server.open({
      ...{ verification: bySignature, secrets, handshakes: [slack], shadow: true },
    });
    const body = json({ type: "url_verification", challenge: "c" });
    expect((await server.send(id, { body })).text).toContain('"published":1');
    expect((await server.send(id, signed(body))).text).toBe("c");
  });

  it("by GET that must be verified is answered only with both its conditions and its token", async () => {
    const all = [{ in: "header", name: "x-ping" }];
    const ping = { title: "Ping", when: { method: "GET", all }, respond: { body: "pong" } };
    const { id } = await server.open({
      verification: { scheme: "token", name: "x-t" },
      secrets,
      handshakes: [ping],
    });
    const get = (headers: Record<string, string>) => server.send(id, { method: "GET", headers });
    expect((await get({ "x-ping": "1" })).status).toBe(401);
    expect((await get({ "x-t": "s3cret" })).status).toBe(401);
    expect((await get({ "x-ping": "1", "x-t": "s3cret" })).text).toBe("pong");
  });

  it("is not answered without its token, and the token is not kept in quarantine", async () => {
    const { id, appId } = await server.open({ verification: bySignature, secrets, handshakes: [meta] });
    for (const query of [
      "?hub.mode=subscribe&hub.challenge=1&hub.verify_token=wrong-token-9",
      "?hub.mode=subscribe&hub.challenge=1",
      "?hub.mode=subscribe&hub.challenge=1&hub.verify_token=my+verify+token&hub.verify_token=my+verify+token",
      "?hub.mode=subscribe&hub.verify_token=my+verify+token",
      "?hub.mode=subscribe&hub.challenge=1&hub.verify_token=s3cret",
    ]) {
      expect([query, (await server.send(id, { method: "GET", query })).status]).toEqual([query, 401]);
    }
    const kept = await server.spine.api.call.get(`/apps/${appId}/quarantine?channelId=${id}`);
    const record = await server.spine.api.call.get(`/apps/${appId}/quarantine/${kept[0].id}`);
    expect(record.query).toEqual({ "hub.mode": "subscribe", "hub.challenge": "1" });
  });

  it("adds its methods to the address only while it is allowed", async () => {
    const methods = async (config: object, method: string) => {
      const { id } = await server.open({ verification: bySignature, secrets, ...config });
      const { status, headers } = await server.send(id, { method });
      return [status, headers.get("allow")];
    };
    expect(await methods({}, "GET")).toEqual([405, "POST"]);
    expect(await methods({ handshakes: [meta, crc] }, "PUT")).toEqual([405, "POST, GET"]);
    expect(await methods({ handshakes: [meta] }, "GET")).toEqual([401, null]);
    expect(await methods({ handshakes: [meta], allowHandshakes: "never" }, "GET")).toEqual([405, "POST"]);
    expect(await methods({ handshakes: [meta], allowHandshakes: "setup" }, "GET")).toEqual([405, "POST"]);
    expect(await methods({ handshakes: [crc], allowHandshakes: "setup", secrets: [] }, "GET")).toEqual([
      401,
      null,
    ]);
  });

  it("signs no challenge that could be a delivery", async () => {
    const { id } = await server.open({
      verification: { ...bySignature, encoding: "base64" },
      secrets,
      handshakes: [crc],
    });
    for (const token of ['{"a":1}', "a=b", "1700000000.x", "v0:1:x", "", "x".repeat(257)]) {
      const answer = await server.send(id, {
        method: "GET",
        query: `?crc_token=${encodeURIComponent(token)}`,
      });
      expect([token, answer.status]).toEqual([token, 401]);
    }
  });

  it.each<[string, string, string, object]>([
    ["a number", "12345", "12345", {}],
    ["a word", "some-text", "some-text", {}],
    [
      "a body by its hash",
      '{"a":1}',
      `1${createHash("sha256").update('{"a":1}').digest("hex")}`,
      { template: "{{header:x-t}}{{body | sha256}}" },
    ],
  ])("does not accept a delivery by a signature that it has made itself: %s", async (_, body, token, settings) => {
    const { id } = await server.open({
      verification: { ...bySignature, encoding: "base64", ...settings },
      secrets,
      handshakes: [crc],
    });
    const { text } = await server.send(id, { method: "GET", query: `?crc_token=${token}` });
    const signature = JSON.parse(text).response_token.slice("sha256=".length);
    const headers = { "content-type": "text/plain", "x-sig": signature, "x-t": "1" };
    expect((await server.send(id, { body, headers })).status).toBe(401);
  });

  it("that signs challenges still lets its sender's deliveries in", async () => {
    const verification = { ...bySignature, encoding: "base64" };
    const { id } = await server.open({ verification, secrets, handshakes: [crc] });
    const body = '{"for_user_id":"1"}';
    const headers = { "x-sig": hmac("s3cret", body).toString("base64") };
    expect(await server.send(id, { body, headers })).toMatchObject(published);
  });

  it("echoes no line break into a header, and no text that is too long", async () => {
    const echo = {
      title: "Echo",
      when: { method: "GET" },
      requireVerified: false,
      respond: { headers: { "X-Echo": "{{query:h | optional}}" }, body: "{{query:b | optional}}" },
    };
    const { id } = await server.open({ verification: bySignature, secrets, handshakes: [echo] });
    expect((await server.send(id, { method: "GET", query: "?h=a%0d%0aSet-Cookie:%20x" })).status).toBe(401);
    expect((await server.send(id, { method: "GET", query: `?b=${"x".repeat(4_096)}` })).status).toBe(200);
    const long = await server.send(id, { method: "GET", query: `?b=${"x".repeat(4_097)}` });
    expect([long.status, long.text]).toEqual([200, ""]);
  });
});

describe("a handshake is refused, naming the field, with", () => {
  const bare = { title: "x", when: { method: "GET" }, requireVerified: false };
  it.each<[string, object, string]>([
    ["a POST that any delivery could be", { ...bare, when: { method: "POST" } }, "when.all"],
    [
      "a POST by a field alone that a delivery could have",
      { ...bare, when: { method: "POST", all: [{ in: "body", name: "$.challenge" }] } },
      "when.all",
    ],
    [
      "a POST by what is absent alone",
      { ...bare, when: { method: "POST", all: [{ in: "header", name: "x", absent: true }] } },
      "when.all",
    ],
    [
      "a condition that says two things",
      { ...bare, when: { method: "GET", all: [{ in: "query", name: "x", equals: "a", absent: true }] } },
      "when.all[0]",
    ],
    [
      "JSON that is none",
      { ...bare, respond: { contentType: "application/json", body: '{"a":{{query:a}}}' } },
      "respond.body",
    ],
    ["the secret itself in the answer", { ...bare, respond: { body: "{{secret}}" } }, "respond.body"],
    ["an unknown filter", { ...bare, respond: { body: "{{query:a | md6}}" } }, "respond.body"],
    ["a body where there is none", { ...bare, respond: { status: 204, body: "x" } }, "respond.body"],
    [
      "a header that says how to read it",
      { ...bare, respond: { headers: { "Content-Type": "text/html" } } },
      "respond.headers.Content-Type",
    ],
    ["a cookie", { ...bare, respond: { headers: { "set-cookie": "a=b" } } }, "respond.headers.set-cookie"],
    ["another type", { ...bare, respond: { contentType: "text/html" } }, "respond.contentType"],
    [
      "a secret that only who has it may bring",
      { ...bare, requireVerified: true, captureSecret: { in: "header", name: "x" } },
      "requireVerified",
    ],
    [
      "a call for anyone",
      { ...bare, visit: { in: "query", name: "u", pinned: ["https://a.example/x"] } },
      "visit",
    ],
    [
      "a call to anywhere",
      { ...bare, requireVerified: true, visit: { in: "query", name: "u", pinned: ["https://*/x"] } },
      "visit.pinned[0]",
    ],
  ])("%s", async (_, handshake, field) => {
    const channels = [{ uid: "c", kind: "webhook", config: { handshakes: [handshake] } }];
    const { call } = server.spine.api;
    const { status, paths } = await call.refusal("POST", "/blueprints", { title: "x", channels });
    expect(status).toBe(400);
    expect(paths).toContain(`channels[0].config.handshakes[0].${field}`);
  });
});
