import { sign } from "node:crypto";
import { derOf, KEYS } from "./keys.ts";
import {
  AT_MS,
  type Case,
  caseOf,
  delivery,
  hmac,
  JSON_TYPE,
  type Recipe,
  texts,
  withHeaders,
} from "./kit.ts";

const SPECIFICATION =
  "https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md";
const SVIX = "https://docs.svix.com/receiving/verifying-payloads/how-manual";
const ID = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W";

const WHSEC = texts(
  `whsec_${Buffer.alloc(24, "one").toString("base64")}`,
  `whsec_${Buffer.alloc(24, "two").toString("base64")}`,
  `whsec_${Buffer.alloc(24, "000").toString("base64")}`,
);
const decodeSecret = (secret: string): Buffer => Buffer.from(secret.replace("whsec_", ""), "base64");

/** Signs with version v1 of Standard Webhooks 1.0.0, section "Signature scheme". */
const signed =
  (prefix: string, keyOf: (secret: string) => Buffer): Recipe["sign"] =>
  (sent, key, atMs) => {
    const time = String(atMs / 1_000);
    const former = hmac("sha256", "the secret before", `${ID}.${time}.${sent.body}`, "base64");
    const signature = hmac("sha256", keyOf(key), `${ID}.${time}.${sent.body}`, "base64");
    return withHeaders(sent, {
      [`${prefix}id`]: ID,
      [`${prefix}timestamp`]: time,
      [`${prefix}signature`]: `v1,${former} v1,${signature}`,
    });
  };

const sender = (source: string, body: unknown, type: string, prefix = "webhook-"): Recipe => ({
  source,
  secrets: WHSEC,
  sent: delivery({}, body),
  sign: signed(prefix, decodeSecret),
  toleranceSeconds: 300,
  events: [{ type, id: ID }],
});

/** Creates a case with the example that Svix and later the specification published. */
const published = (source: string, prefix: string, id: string, events: Case["expect"]): Case =>
  caseOf({
    name: "the published example",
    kind: "accept",
    origin: "documented",
    source,
    secrets: [{ value: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }],
    arrivedAt: "2021-02-25T15:02:10.000Z",
    request: {
      headers: {
        ...JSON_TYPE,
        [`${prefix}id`]: id,
        [`${prefix}timestamp`]: "1614265330",
        [`${prefix}signature`]: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
      },
      body: '{"test": 2432232314}',
    },
    expect: events,
  });

/** Providers that follow the specification, some with other header names. */
export const standard: Readonly<Record<string, Recipe>> = {
  "standard-webhooks": {
    ...sender(SPECIFICATION, { type: "contact.created", data: {} }, "contact.created"),
    more: [
      published(SPECIFICATION, "webhook-", "msg_p5jXN8AQM9LWM0D4loKWxJek", { verified: true }),
      ...(["accept", "altered"] as const).map(byEd25519),
    ],
  },
  svix: {
    ...sender(SVIX, { type: "invoice.paid" }, "invoice.paid", "svix-"),
    more: [published(SVIX, "svix-", "msg_p5jXN8AQM9LWM0D4loKWxJek", { verified: true })],
  },
  clerk: sender(
    "https://clerk.com/docs/guides/development/webhooks/overview",
    { object: "event", type: "user.created" },
    "user.created",
    "svix-",
  ),
  resend: sender(
    "https://resend.com/docs/dashboard/webhooks/verify-webhooks-requests",
    { type: "email.delivered" },
    "email.delivered",
    "svix-",
  ),
  openai: sender(
    "https://platform.openai.com/docs/guides/webhooks",
    { object: "event", id: "evt_1", type: "response.completed" },
    "response.completed",
  ),
  replicate: sender(
    "https://replicate.com/docs/topics/webhooks/verify-webhook",
    { id: "ufawqhfynnddngldkgtslldrkq", status: "succeeded" },
    "succeeded",
  ),
  polar: {
    ...sender(
      "https://polar.sh/docs/integrate/webhooks/delivery",
      { type: "order.created" },
      "order.created",
    ),
    secrets: texts("polar_whs_one", "polar_whs_two", "polar_whs_000"),
    sign: signed("webhook-", (secret) => Buffer.from(secret)),
  },
  loops: sender("https://loops.so/docs/webhooks", { eventName: "contact.created" }, "contact.created"),
  render: sender("https://render.com/docs/webhooks", { type: "deploy_ended", data: {} }, "deploy_ended"),
  brex: sender(
    "https://developer.brex.com/docs/webhooks/",
    { event_type: "TRANSFER_PROCESSED", transfer_id: "1" },
    "TRANSFER_PROCESSED",
  ),
  "incident-io": sender(
    "https://api-docs.incident.io/tag/Webhooks",
    { event_type: "public_incident.incident_created_v2" },
    "public_incident.incident_created_v2",
  ),
};

/** Creates a case with version v1a, an Ed25519 signature. The channel has only the public key. */
function byEd25519(kind: "accept" | "altered"): Case {
  const body = '{"type":"contact.created"}';
  const time = String(AT_MS / 1_000);
  const signature = sign(null, Buffer.from(`${ID}.${time}.${body}`), KEYS.ed25519[0].private).toString(
    "base64",
  );
  const raw = Buffer.from(derOf(KEYS.ed25519[0].public), "base64").subarray(-32);
  return caseOf({
    name: "a delivery signed with Ed25519 (v1a)", kind,
    secrets: [{ value: `whpk_${raw.toString("base64")}` }],
    request: {
      headers: {
        ...JSON_TYPE,
        "webhook-id": ID,
        "webhook-timestamp": time,
        "webhook-signature": `v1a,${signature}`,
      },
      body: kind === "accept" ? body : '{"type":"contact.deleted"}',
    },
    expect: kind === "accept" ? { events: [{ type: "contact.created", id: ID }] } : { refused: "mismatch" },
  });
}
