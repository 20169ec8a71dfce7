import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from "jose";
import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext } from "./provider.ts";

export interface GmailEmulator extends Emulator {
  /** Google's document of public keys, as JSON. */
  readonly keys: string;
}

interface GmailHook extends Hook {
  /** Service account in whose name Pub/Sub signs. */
  readonly secret: string;
  readonly expiresAtMs: number;
  readonly topic: string;
  readonly subscription: string;
}

/** A push subscription of Pub/Sub. */
interface PushSubscription {
  readonly name: string;
  readonly topic: string;
  readonly address: string;
  readonly serviceAccount: string;
  readonly audience: string;
}

const LIFETIME_MS = 7 * 86_400_000;
/** The only mailbox. */
const MAILBOX = "user@example.com";
const KEY_ID = "google-1";

const watchSchema = z.object({
  topicName: z.string().regex(/^projects\/[^/]+\/topics\/[^/]+$/),
  labelIds: z.array(z.string()).default([]),
});
const subscriptionSchema = z.object({
  topic: z.string(),
  pushConfig: z.object({
    pushEndpoint: z.url(),
    oidcToken: z.object({ serviceAccountEmail: z.email(), audience: z.string().optional() }),
  }),
});

/** https://developers.google.com/workspace/gmail/api/guides/push, with the push subscriptions of Pub/Sub */
export async function startGmail(options: EmulatorOptions): Promise<GmailEmulator> {
  const { privateKey, publicKey } = await generateKeyPair("RS256");
  const key = { ...(await exportJWK(publicKey)), kid: KEY_ID, alg: "RS256", use: "sig" };
  const emulator = await startEmulator<GmailHook>(options, (context) => createGmail(context, privateKey));
  return { ...emulator, keys: JSON.stringify({ keys: [key] }) };
}

function createGmail(context: ProviderContext<GmailHook>, privateKey: CryptoKey): Provider<GmailHook> {
  const { hooks, nowMs } = context;
  const subscriptions = new Map<string, PushSubscription>();
  let historyId = 1_234_567_890;

  function watch(call: Call): Answer {
    const body = call.read(watchSchema);
    if (body === undefined) return error(400, "invalidArgument", "Invalid topicName");
    const other = hooks.list().find(({ topic }) => topic !== body.topicName);
    if (other !== undefined) {
      return error(
        400,
        "failedPrecondition",
        "Only one user push notification client allowed per developer (call /stop then try again)",
      );
    }
    const subscription = [...subscriptions.values()].find(({ topic }) => topic === body.topicName);
    if (subscription === undefined) {
      return error(404, "notFound", `Resource not found (resource=${body.topicName}).`);
    }
    const { name, address, serviceAccount } = subscription;
    const expiresAtMs = nowMs() + LIFETIME_MS;
    hooks.put({
      id: MAILBOX,
      address,
      secret: serviceAccount,
      expiresAtMs,
      topic: body.topicName,
      subscription: name,
    });
    return { status: 200, body: { historyId: String(++historyId), expiration: String(expiresAtMs) } };
  }

  function subscribe(call: Call): Answer {
    const body = call.read(subscriptionSchema);
    if (body === undefined) return error(400, "invalidArgument", "Invalid push subscription");
    const { pushEndpoint, oidcToken } = body.pushConfig;
    const name = call.url.pathname.slice("/v1/".length);
    if (subscriptions.has(name)) return error(409, "alreadyExists", `Resource already exists: ${name}`);
    const { serviceAccountEmail: serviceAccount, audience = pushEndpoint } = oidcToken;
    subscriptions.set(name, { name, topic: body.topic, address: pushEndpoint, serviceAccount, audience });
    return { status: 200, body: { name, ...body } };
  }

  async function build({ address, secret, subscription }: GmailHook, message: Message): Promise<Outgoing> {
    const { id, payload, nowMs: atMs } = message;
    const seconds = Math.floor(atMs / 1_000);
    const audience = subscriptions.get(subscription)?.audience ?? address;
    const token = await new SignJWT({
      email: secret,
      email_verified: true,
      iat: seconds,
      exp: seconds + 3_600,
    })
      .setProtectedHeader({ alg: "RS256", kid: KEY_ID, typ: "JWT" })
      .setIssuer("https://accounts.google.com")
      .setAudience(audience)
      .setSubject("113774264463038321964")
      .sign(privateKey);
    const change = payload ?? { emailAddress: MAILBOX, historyId: String(historyId) };
    return {
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify({
        message: {
          data: Buffer.from(JSON.stringify(change)).toString("base64"),
          messageId: id,
          publishTime: new Date(atMs).toISOString(),
        },
        subscription,
      }),
    };
  }

  return {
    unauthorized: error(401, "authError", "Request had invalid authentication credentials."),
    forbidden: error(403, "insufficientPermissions", "Request had insufficient authentication scopes."),
    notFound: error(404, "notFound", "Not Found"),
    routes: [
      { step: "check", on: "PUT /v1/projects/:project/subscriptions/:name", handle: subscribe },
      {
        step: () => (hooks.find(MAILBOX) === undefined ? "create" : "renew"),
        on: "POST /gmail/v1/users/:user/watch",
        handle: watch,
      },
      {
        step: "remove",
        on: "POST /gmail/v1/users/:user/stop",
        handle: () => {
          hooks.remove(MAILBOX);
          return { status: 204 };
        },
      },
    ],
    makeForeign: (address) => ({
      id: MAILBOX,
      address,
      secret: "push@another.iam.gserviceaccount.com",
      expiresAtMs: nowMs() + LIFETIME_MS,
      topic: "projects/another/topics/gmail",
      subscription: "projects/another/subscriptions/gmail",
    }),
    sign: build,
  };
}

const error = (code: number, reason: string, message: string): Answer => ({
  status: code,
  body: { error: { code, message, errors: [{ domain: "global", reason, message }] } },
});
