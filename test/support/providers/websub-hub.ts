import { randomUUID } from "node:crypto";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext } from "./provider.ts";
import { sign } from "./signatures.ts";

/** A hub of https://www.w3.org/TR/websub/ that is open to all subscribers. */
export const startWebSubHub = (
  options: EmulatorOptions & {
    /** Hash of the signatures, which the hub chooses. */
    readonly algorithm?: "sha1" | "sha256";
  },
): Promise<Emulator> =>
  startEmulator<WebSubHook>(options, (context) => createHub(context, options.algorithm ?? "sha256"));

interface WebSubHook extends Hook {
  readonly topic: string;
  readonly expiresAtMs: number;
}

const DEFAULT_LEASE_SECONDS = 432_000;
const MAX_LEASE_SECONDS = 864_000;
const MAX_SECRET_BYTES = 200;

function createHub(context: ProviderContext<WebSubHook>, algorithm: string): Provider<WebSubHook> {
  const { hooks, nowMs, origin } = context;
  const idOf = (topic: string, address: string): string => `${topic} ${address}`;

  async function isConfirmed(address: string, query: Readonly<Record<string, string>>): Promise<boolean> {
    const challenge = randomUUID();
    const { status, text } = await context.send(address, {
      method: "GET",
      query: { ...query, "hub.challenge": challenge },
    });
    return status >= 200 && status < 300 && text === challenge;
  }

  async function subscribe(topic: string, address: string, form: URLSearchParams): Promise<void> {
    const requested = Number(form.get("hub.lease_seconds") ?? DEFAULT_LEASE_SECONDS);
    const leaseSeconds = Math.min(requested, MAX_LEASE_SECONDS);
    const query = {
      "hub.mode": "subscribe",
      "hub.topic": topic,
      "hub.lease_seconds": String(leaseSeconds),
    };
    if (!(await isConfirmed(address, query))) return;
    hooks.put({
      id: idOf(topic, address),
      address,
      topic,
      secret: form.get("hub.secret") ?? undefined,
      expiresAtMs: nowMs() + leaseSeconds * 1_000,
    });
  }

  async function unsubscribe(topic: string, address: string): Promise<void> {
    const query = { "hub.mode": "unsubscribe", "hub.topic": topic };
    if (await isConfirmed(address, query)) hooks.remove(idOf(topic, address));
  }

  function handle({ form }: Call): Answer {
    const [mode, topic, callback] = ["hub.mode", "hub.topic", "hub.callback"].map((name) => form.get(name));
    if (topic == null || !URL.canParse(topic)) return invalid("hub.topic must be a URL");
    if (callback == null || !URL.canParse(callback)) return invalid("hub.callback must be a URL");
    if (Buffer.byteLength(form.get("hub.secret") ?? "") >= MAX_SECRET_BYTES)
      return invalid(`hub.secret must be shorter than ${MAX_SECRET_BYTES} bytes`);
    const isNew = hooks.find(idOf(topic, callback)) === undefined;
    if (mode === "subscribe" && isNew && hooks.list().length >= context.quota())
      return { status: 403, body: "the hub accepts no more subscriptions" };
    switch (mode) {
      case "subscribe":
        return { status: 202, after: () => subscribe(topic, callback, form) };
      case "unsubscribe":
        return { status: 202, after: () => unsubscribe(topic, callback) };
      default:
        return invalid("hub.mode must be subscribe or unsubscribe");
    }
  }

  return {
    readToken: () => context.token,
    unauthorized: { status: 401 },
    forbidden: { status: 403 },
    notFound: { status: 404 },
    routes: ["/", "/subscribe"].map((path) => ({ step: stepOf, on: `POST ${path}`, handle })),
    makeForeign: (address) => ({
      id: idOf("https://example.com/feed", address),
      address,
      topic: "https://example.com/feed",
      secret: "secret of another program",
      expiresAtMs: nowMs() + MAX_LEASE_SECONDS * 1_000,
    }),
    sign: (hook, message) => build(hook, message, { origin, algorithm }),
  };

  function stepOf({ form }: Call): "create" | "renew" | "remove" {
    if (form.get("hub.mode") === "unsubscribe") return "remove";
    const id = idOf(form.get("hub.topic") ?? "", form.get("hub.callback") ?? "");
    return hooks.find(id) === undefined ? "create" : "renew";
  }
}

function build(
  { topic, secret }: WebSubHook,
  { id, payload }: Message,
  { origin, algorithm }: { origin: string; algorithm: string },
): Outgoing {
  const body =
    typeof payload === "string" ? payload : `<feed xmlns="http://www.w3.org/2005/Atom"><id>${id}</id></feed>`;
  return {
    headers: {
      "content-type": "application/atom+xml",
      link: `<${origin}/>; rel="hub", <${topic}>; rel="self"`,
      ...(secret && { "x-hub-signature": `${algorithm}=${sign(body, secret, { algorithm })}` }),
    },
    body,
  };
}

const invalid = (reason: string): Answer => ({ status: 400, body: reason });
