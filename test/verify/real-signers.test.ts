import { createHmac, generateKeyPairSync, sign as signWith } from "node:crypto";
import { sign as signGithub } from "@octokit/webhooks-methods";
import { isValidSlackRequest } from "@slack/bolt/dist/receivers/verify-request.js";
import { Webhook as StandardWebhook } from "standardwebhooks";
import Stripe from "stripe";
import { Webhook as SvixWebhook } from "svix";
import twilio from "twilio";
import { describe, expect, it } from "vitest";
import {
  ARRIVED_AT_MS,
  HOOKS_URL,
  isVerified,
  type RequestParts,
  requestOf,
  senderOf,
  TARGET,
} from "./support.ts";

const NOW_SECONDS = ARRIVED_AT_MS / 1_000;
const body = JSON.stringify({ id: 1, text: "déjà vu ✓", nested: { a: [1.1, null] } });

/** Expects the delivery to be accepted, but not with another body or without its secret. */
async function expectBoundToSecretAndBody(
  config: { readonly verification: object },
  secret: string,
  other: string,
  parts: RequestParts,
) {
  const verdicts = await Promise.all([
    isVerified(senderOf({ ...config, secrets: [{ value: secret }] }), parts),
    isVerified(senderOf({ ...config, secrets: [{ value: other }, { value: secret }] }), parts),
    isVerified(senderOf({ ...config, secrets: [{ value: other }] }), parts),
    isVerified(senderOf({ ...config, secrets: [{ value: secret }] }), { ...parts, body: `${parts.body} ` }),
  ]);
  expect(verdicts).toEqual([true, true, false, false]);
}

describe("a delivery is accepted if it was signed by", () => {
  it("@octokit/webhooks-methods", async () => {
    const headers = { "x-hub-signature-256": await signGithub("s", body) };
    const verification = { scheme: "hmac", name: "X-Hub-Signature-256", prefix: "sha256=" };
    await expectBoundToSecretAndBody({ verification }, "s", "t", { body, headers });
  });

  it("stripe", async () => {
    const header = new Stripe("sk_test").webhooks.generateTestHeaderString({
      payload: body,
      secret: "whsec_a",
      timestamp: NOW_SECONDS,
    });
    const verification = {
      scheme: "hmac",
      name: "Stripe-Signature",
      items: { separator: ",", assign: "=", key: "v1" },
      template: "{{timestamp}}.{{body}}",
      timestamp: { source: { in: "item", name: "t" } },
      toleranceSeconds: 300,
    };
    const parts = { body, headers: { "stripe-signature": header } };
    await expectBoundToSecretAndBody({ verification }, "whsec_a", "whsec_b", parts);
    const sender = senderOf({ verification, secrets: [{ value: "whsec_a" }] });
    expect(await isVerified(sender, { ...parts, arrivedAtMs: ARRIVED_AT_MS + 301_000 })).toBe(false);
  });

  const keys = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_plJ3nmyCDGBKInavdOK15jslplJ3nmyC"] as const;

  it("svix", async () => {
    const at = new Date(ARRIVED_AT_MS);
    const signature = new SvixWebhook(keys[0]).sign("msg_1", at, body);
    const headers = {
      "svix-id": "msg_1",
      "svix-timestamp": String(NOW_SECONDS),
      "svix-signature": signature,
    };
    const verification = { scheme: "standardWebhooks", headerPrefix: "svix-" };
    await expectBoundToSecretAndBody({ verification }, keys[0], keys[1], { body, headers });
  });

  it("standardwebhooks, and its message id becomes the delivery id", async () => {
    const signature = new StandardWebhook(keys[0]).sign("msg_1", new Date(ARRIVED_AT_MS), body);
    const headers = {
      "webhook-id": "msg_1",
      "webhook-timestamp": String(NOW_SECONDS),
      "webhook-signature": `v1,${Buffer.alloc(32).toString("base64")} v2,AAAA ${signature}`,
    };
    const verification = { scheme: "standardWebhooks" };
    await expectBoundToSecretAndBody({ verification }, keys[0], keys[1], { body, headers });
    const sender = senderOf({ verification, secrets: [{ value: keys[0] }] });
    expect(await sender.verify(requestOf({ body, headers }))).toMatchObject({
      ok: true,
      value: { deliveryId: "msg_1" },
    });
    for (const other of [{ "webhook-id": "msg_2" }, { "webhook-timestamp": String(NOW_SECONDS + 1) }]) {
      expect(await isVerified(sender, { body, headers: { ...headers, ...other } })).toBe(false);
    }
    for (const [seconds, accepted] of [
      [300, true],
      [301, false],
      [-300, true],
      [-301, false],
    ] as const) {
      expect(await isVerified(sender, { body, headers, arrivedAtMs: ARRIVED_AT_MS + seconds * 1_000 })).toBe(
        accepted,
      );
    }
    const raw = new StandardWebhook("not base64!", { format: "raw" }).sign(
      "msg_1",
      new Date(ARRIVED_AT_MS),
      body,
    );
    const withTextSecret = {
      verification: { ...verification, secretEncoding: "utf8" },
      secrets: [{ value: "not base64!" }],
    };
    expect(
      await isVerified(senderOf(withTextSecret), { body, headers: { ...headers, "webhook-signature": raw } }),
    ).toBe(true);
  });

  it("node:crypto as Standard Webhooks v1a, and its public key is never used as a v1 secret", async () => {
    const pair = generateKeyPairSync("ed25519");
    const publicKey = `whpk_${pair.publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64")}`;
    const content = Buffer.from(`msg_1.${NOW_SECONDS}.${body}`);
    const v1a = signWith(null, content, pair.privateKey).toString("base64");
    // Anyone with the public key could forge this delivery if the key were used as a secret.
    const forged = createHmac("sha256", Buffer.from(publicKey.slice(5), "base64"))
      .update(content)
      .digest("base64");
    const headers = (signature: string) => ({
      "webhook-id": "msg_1",
      "webhook-timestamp": String(NOW_SECONDS),
      "webhook-signature": signature,
    });
    const sender = senderOf({
      verification: { scheme: "standardWebhooks" },
      secrets: [{ value: publicKey }],
    });
    expect(await isVerified(sender, { body, headers: headers(`v1,${forged} v1a,${v1a}`) })).toBe(true);
    for (const signature of [`v1,${forged}`, `v1,${v1a}`, `v1a,${forged}`]) {
      expect(await isVerified(sender, { body, headers: headers(signature) })).toBe(false);
    }
    expect(await isVerified(sender, { body: `${body} `, headers: headers(`v1a,${v1a}`) })).toBe(false);
  });

  it("twilio, for form bodies and for other bodies", async () => {
    const shared = { scheme: "hmac", algorithm: "sha1", encoding: "base64", name: "X-Twilio-Signature" };
    const verification = {
      scheme: "anyOf",
      of: [
        { ...shared, template: "{{url}}{{parameters}}", parameters: { of: "form" } },
        { ...shared, template: "{{url}}", bodyHash: { source: { in: "query", name: "bodySHA256" } } },
      ],
    };
    const fields = { To: "+18005551212", Body: "déjà vu & more", From: "+14158675309", Media: ["b", "a"] };
    const form = "To=%2B18005551212&Body=d%C3%A9j%C3%A0+vu+%26+more&From=%2B14158675309&Media=b&Media=a";
    const url = `${HOOKS_URL}${TARGET}?a=1`;
    const signature = twilio.getExpectedTwilioSignature("token", url, fields);
    const type = { "content-type": "application/x-www-form-urlencoded" };
    const parts = {
      body: form,
      target: `${TARGET}?a=1`,
      headers: { ...type, "x-twilio-signature": signature },
    };
    await expectBoundToSecretAndBody({ verification }, "token", "other", parts);

    const target = `${TARGET}?bodySHA256=${twilio.getExpectedBodyHash(body)}`;
    const urlSignature = twilio.getExpectedTwilioSignature("token", `${HOOKS_URL}${target}`, {});
    const headers = { "content-type": "application/json", "x-twilio-signature": urlSignature };
    await expectBoundToSecretAndBody({ verification }, "token", "other", { body, target, headers });
  });

  it("node:crypto in Slack's format, exactly if @slack/bolt also accepts the signature", async () => {
    const verification = {
      scheme: "hmac",
      name: "X-Slack-Signature",
      prefix: "v0=",
      template: "v0:{{timestamp}}:{{body}}",
      timestamp: { source: { in: "header", name: "X-Slack-Request-Timestamp" } },
      toleranceSeconds: 300,
    };
    const sign = (secret: string, seconds: number, text: string) =>
      `v0=${createHmac("sha256", secret).update(`v0:${seconds}:${text}`).digest("hex")}`;
    const sender = senderOf({ verification, secrets: [{ value: "s" }] });
    const cases = [
      sign("s", NOW_SECONDS, body),
      sign("t", NOW_SECONDS, body),
      sign("s", NOW_SECONDS, `${body} `),
      sign("s", NOW_SECONDS - 1, body),
    ];
    for (const signature of cases) {
      const isValid = isValidSlackRequest({
        signingSecret: "s",
        body,
        headers: { "x-slack-signature": signature, "x-slack-request-timestamp": NOW_SECONDS },
        nowMilliseconds: ARRIVED_AT_MS,
      });
      const headers = { "x-slack-signature": signature, "x-slack-request-timestamp": String(NOW_SECONDS) };
      expect([signature, await isVerified(sender, { body, headers })]).toEqual([signature, isValid]);
    }
  });
});
