import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { startHookServer } from "../support/hook-server.ts";
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

const server = opened(startHookServer);

const asana = {
  title: "Handshake",
  when: { method: "POST", all: [{ in: "header", name: "X-Hook-Secret" }] },
  requireVerified: false,
  captureSecret: { in: "header", name: "X-Hook-Secret" },
  respond: { headers: { "X-Hook-Secret": "{{header:X-Hook-Secret}}" } },
};

describe("a signing secret that a sender transmits in a webhook handshake", () => {
  it("is stored if the channel has no secret yet, and verifies all later deliveries", async () => {
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
    // A sender that missed the response repeats the handshake. It receives the same reply, and another secret is rejected.
    expect((await shake("b537")).headers.get("x-hook-secret")).toBe("b537");
    const other = await shake("other");
    expect([other.status, other.headers.get("x-hook-secret")]).toEqual([401, null]);
    expect(await server.send(id, event)).toMatchObject(published);
    const audit = await server.spine.api.call.get("/audit");
    expect(audit.filter(({ fields }: { fields: string[] }) => fields.includes("config.secrets")).length).toBe(
      1,
    );
  });

  it("is stored only once when several handshakes arrive at the same time", async () => {
    const { id } = await server.open({ verification: bySignature, handshakes: [asana] });
    const shake = (secret: string) => server.send(id, { headers: { "x-hook-secret": secret }, body: "{}" });
    const answers = await Promise.all([shake("a1"), shake("b2"), shake("c3")]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  });

  it("can be in the body, and is rejected if the verification scheme cannot use the secret", async () => {
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

  it("is not stored while handshakes are not allowed", async () => {
    const { id } = await server.open({
      verification: bySignature,
      handshakes: [asana],
      allowHandshakes: "never",
    });
    expect((await server.send(id, { headers: { "x-hook-secret": "a" }, body: "{}" })).status).toBe(401);
  });
});

describe("a webhook handshake", () => {
  it("is not confused with a delivery that looks similar", async () => {
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

  it("is rejected with 401 if verification is required and the request is not signed", async () => {
    const { id } = await server.open({ verification: bySignature, secrets, handshakes: [slack] });
    const body = json({ type: "url_verification", challenge: "c" });
    expect(await server.send(id, { body })).toMatchObject({
      status: 401,
      text: expect.not.stringContaining("challenge"),
    });
  });

  it("that requires verification is not answered without a signature, even in shadow mode", async () => {
    const { id } = await server.open({
      verification: bySignature,
      secrets,
      handshakes: [slack],
      shadow: true,
    });
    const body = json({ type: "url_verification", challenge: "c" });
    expect((await server.send(id, { body })).text).toContain('"published":1');
    expect((await server.send(id, signed(body))).text).toBe("c");
  });

  it("with GET that requires verification is answered only if its conditions match and its token is valid", async () => {
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

  it("with a wrong or missing token is rejected, and the token is not stored in quarantine", async () => {
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

  it("adds its HTTP method to the methods that the channel accepts, but only while handshakes are allowed", async () => {
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

  it("does not sign a challenge that looks like a delivery, so that the signature cannot be used for one", async () => {
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
      "the hash of a body",
      '{"a":1}',
      `1${createHash("sha256").update('{"a":1}').digest("hex")}`,
      { template: "{{header:x-t}}{{body | sha256}}" },
    ],
  ])("that signs a challenge returns no signature that is valid for a delivery with the same text: %s", async (_, body, token, settings) => {
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

  it("that signs challenges does not interfere with signed deliveries", async () => {
    const verification = { ...bySignature, encoding: "base64" };
    const { id } = await server.open({ verification, secrets, handshakes: [crc] });
    const body = '{"for_user_id":"1"}';
    const headers = { "x-sig": hmac("s3cret", body).toString("base64") };
    expect(await server.send(id, { body, headers })).toMatchObject(published);
  });

  it("does not echo line breaks into a header, or text that is too long", async () => {
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
