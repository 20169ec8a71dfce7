import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Outgoing, Provider, ProviderContext } from "./provider.ts";
import { sign } from "./signatures.ts";

export interface TwitchEmulator extends Emulator {
  /** Revokes a subscription with a message to its address, as Twitch does for a user that was removed. */
  readonly revoke: (id: string) => Promise<number>;
}

interface TwitchHook extends Hook {
  readonly secret: string;
  readonly status:
    | "enabled"
    | "webhook_callback_verification_pending"
    | "webhook_callback_verification_failed";
  readonly events: readonly [type: string];
  readonly version: string;
  readonly condition: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
}

const MAX_TOTAL_COST = 10_000;
const PAGE_SIZE = 100;

const createSchema = z.object({
  type: z.string().min(1),
  version: z.string().min(1),
  condition: z.record(z.string(), z.string()),
  transport: z.object({ method: z.literal("webhook"), callback: z.url(), secret: z.string() }),
});

/** https://dev.twitch.tv/docs/api/reference/#create-eventsub-subscription */
export async function startTwitch(options: EmulatorOptions): Promise<TwitchEmulator> {
  let revoke: TwitchEmulator["revoke"] = async () => 0;
  const emulator = await startEmulator<TwitchHook>(options, (context) => {
    revoke = async (id) => {
      const hook = context.hooks.find(id);
      if (hook === undefined) return 0;
      context.hooks.remove(id);
      const subscription = { ...view(hook), status: "user_removed" };
      const message = { id: randomUUID(), nowMs: context.nowMs(), type: "revocation" };
      return (await context.send(hook.address, build(hook, message, { subscription }))).status;
    };
    return createTwitch(context);
  });
  return { ...emulator, revoke };
}

function createTwitch(context: ProviderContext<TwitchHook>): Provider<TwitchHook> {
  const { hooks, nowMs } = context;

  async function verify(hook: TwitchHook): Promise<void> {
    const challenge = randomUUID();
    const message = { id: randomUUID(), nowMs: nowMs(), type: "webhook_callback_verification" };
    const { status, text } = await context.send(
      hook.address,
      build(hook, message, { challenge, subscription: view(hook) }),
    );
    if (hooks.find(hook.id) === undefined) return;
    const isVerified = status >= 200 && status < 300 && text === challenge;
    const result = isVerified ? "enabled" : "webhook_callback_verification_failed";
    hooks.put({ ...hook, status: result, isPending: false });
  }

  function create(call: Call): Answer {
    if (call.headers["client-id"] === undefined) return error(401, "Unauthorized", "Client ID is missing");
    const body = call.read(createSchema);
    if (body === undefined) return error(400, "Bad Request", "missing or unparseable subscription");
    const { type, version, condition, transport } = body;
    if (transport.secret.length < 10 || transport.secret.length > 100) {
      return error(400, "Bad Request", "secret must be between 10 and 100 characters");
    }
    const isSame = (hook: TwitchHook): boolean =>
      hook.status !== "webhook_callback_verification_failed" &&
      hook.events[0] === type &&
      hook.address === transport.callback &&
      JSON.stringify(hook.condition) === JSON.stringify(condition);
    if (hooks.list().some(isSame)) return error(409, "Conflict", "subscription already exists");
    if (hooks.list().length >= context.quota()) return error(429, "Too Many Requests", "cost exceeded");
    const hook = hooks.put({
      id: randomUUID(),
      address: transport.callback,
      secret: transport.secret,
      status: "webhook_callback_verification_pending",
      isPending: true,
      events: [type],
      version,
      condition,
      createdAtMs: nowMs(),
    });
    return { status: 202, body: viewAll([hook]), after: () => verify(hook) };
  }

  function list({ url }: Call): Answer {
    const [id, status, type] = ["subscription_id", "status", "type"].map((name) =>
      url.searchParams.get(name),
    );
    const found = hooks
      .list()
      .filter(
        (hook) =>
          (id ?? hook.id) === hook.id &&
          (status ?? hook.status) === hook.status &&
          (type ?? hook.events[0]) === hook.events[0],
      );
    const start = Number(url.searchParams.get("after") ?? 0);
    const end = start + PAGE_SIZE;
    const pagination = found.length > end ? { cursor: String(end) } : {};
    return { status: 200, body: { ...viewAll(found.slice(start, end)), pagination } };
  }

  function remove({ url }: Call): Answer {
    const id = url.searchParams.get("id");
    if (!id) return error(400, "Bad Request", 'The parameter "id" was missing');
    return hooks.remove(id) ? { status: 204 } : error(404, "Not Found", "subscription not found");
  }

  const viewAll = (found: readonly TwitchHook[]): object => ({
    data: found.map(view),
    total: hooks.list().length,
    total_cost: hooks.list().length,
    max_total_cost: context.quota(),
  });

  const path = "/helix/eventsub/subscriptions";
  return {
    quota: MAX_TOTAL_COST,
    unauthorized: error(401, "Unauthorized", "Invalid OAuth token"),
    forbidden: error(403, "Forbidden", "subscription missing proper authorization"),
    notFound: error(404, "Not Found", ""),
    routes: [
      { step: "create", on: `POST ${path}`, handle: create },
      {
        step: ({ url }) => (url.searchParams.has("subscription_id") ? "check" : "list"),
        on: `GET ${path}`,
        handle: list,
      },
      { step: "remove", on: `DELETE ${path}`, handle: remove },
    ],
    makeForeign: (address) => ({
      id: randomUUID(),
      address,
      secret: "secret of another program",
      status: "enabled",
      events: ["stream.online"],
      version: "1",
      condition: { broadcaster_user_id: "1" },
      createdAtMs: nowMs(),
    }),
    receives: ({ status, events }, event) =>
      status === "enabled" && (event === undefined || events[0] === event),
    sign: (hook, { id, payload, nowMs: atMs }) =>
      build(
        hook,
        { id, nowMs: atMs, type: "notification" },
        { subscription: view(hook), event: payload ?? { user_id: "1337" } },
      ),
  };
}

function build(
  { secret, events: [type], version }: TwitchHook,
  message: { readonly id: string; readonly nowMs: number; readonly type: string },
  content: object,
): Outgoing {
  const body = JSON.stringify(content);
  const timestamp = new Date(message.nowMs).toISOString();
  return {
    headers: {
      "content-type": "application/json",
      "twitch-eventsub-message-id": message.id,
      "twitch-eventsub-message-retry": "0",
      "twitch-eventsub-message-type": message.type,
      "twitch-eventsub-message-timestamp": timestamp,
      "twitch-eventsub-message-signature": `sha256=${sign(message.id + timestamp + body, secret)}`,
      "twitch-eventsub-subscription-type": type,
      "twitch-eventsub-subscription-version": version,
    },
    body,
  };
}

const view = ({ id, address, status, events, version, condition, createdAtMs }: TwitchHook): object => ({
  id,
  status,
  type: events[0],
  version,
  condition,
  created_at: new Date(createdAtMs).toISOString(),
  transport: { method: "webhook", callback: address },
  cost: 1,
});

const error = (status: number, name: string, message: string): Answer => ({
  status,
  body: { error: name, status, message },
});
