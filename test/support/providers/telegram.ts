import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext, Route } from "./provider.ts";

/** https://core.telegram.org/bots/api#setwebhook. A bot has one webhook. */
export const startTelegram = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator(options, createTelegram);

/** Id of the only webhook. */
const ID = "webhook";

/** Types of updates that a bot gets by default. */
const DEFAULT_UPDATES = ["message", "edited_message", "channel_post", "callback_query", "my_chat_member"];

const bodySchema = z.object({
  url: z.string().default(""),
  secret_token: z.string().optional(),
  allowed_updates: z.array(z.string()).default([]),
});

function createTelegram(context: ProviderContext<Hook>): Provider<Hook> {
  const { hooks } = context;
  const updateIds = new Map<string, number>();

  function set(call: Call): Answer {
    const body = call.read(bodySchema) ?? bodySchema.safeParse(readParameters(call)).data;
    if (body === undefined) return error(400, "Bad Request: can't parse the parameters");
    const { url, secret_token: secret, allowed_updates: allowed } = body;
    if (url === "") return remove();
    if (!URL.canParse(url)) return error(400, "Bad Request: invalid webhook URL specified");
    if (!isPermitted(url)) {
      return error(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook");
    }
    if (secret !== undefined && secret.length > 256)
      return error(400, "Bad Request: secret token is too long");
    if (secret !== undefined && !/^[\w-]*$/.test(secret)) {
      return error(400, "Bad Request: secret token contains unallowed characters");
    }
    const before = hooks.find(ID);
    const events = allowed.length > 0 ? allowed : (before?.events ?? DEFAULT_UPDATES);
    hooks.put({ id: ID, address: url, secret, events });
    return success(true, before?.address === url ? "Webhook is already set" : "Webhook was set");
  }

  const remove = (): Answer =>
    success(true, hooks.remove(ID) ? "Webhook was deleted" : "Webhook is already deleted");

  function getInfo(): Answer {
    const hook = hooks.find(ID);
    return success({
      url: hook?.address ?? "",
      has_custom_certificate: false,
      pending_update_count: 0,
      ...(hook && { max_connections: 40, ip_address: "127.0.0.1", allowed_updates: hook.events }),
    });
  }

  const forBoth = (step: Route["step"], name: string, handle: Route["handle"]): readonly Route[] =>
    ["GET", "POST"].map((method) => ({ step, on: `${method} /bot:token/${name}`, handle }));

  return {
    readToken: ({ params }) => params.token,
    unauthorized: error(401, "Unauthorized"),
    forbidden: error(401, "Unauthorized"),
    notFound: error(404, "Not Found"),
    routes: [
      ...forBoth("create", "setWebhook", set),
      ...forBoth("check", "getWebhookInfo", getInfo),
      ...forBoth("remove", "deleteWebhook", remove),
    ],
    makeForeign: (address) => ({ id: ID, address, events: DEFAULT_UPDATES }),
    sign: (hook, message) => build(hook, message, toUpdateId(message.id)),
  };

  function toUpdateId(id: string): number {
    const known = updateIds.get(id) ?? context.nextNumber();
    updateIds.set(id, known);
    return known;
  }
}

function build({ secret }: Hook, { payload, event = "message", nowMs }: Message, updateId: number): Outgoing {
  return {
    headers: {
      "content-type": "application/json",
      ...(secret && { "x-telegram-bot-api-secret-token": secret }),
    },
    body: JSON.stringify({
      update_id: updateId,
      [event]: payload ?? { message_id: 1, date: Math.floor(nowMs / 1_000), text: "hello" },
    }),
  };
}

/** Telegram requires HTTPS, but tests receive on this machine. */
const isPermitted = (url: string): boolean =>
  url.startsWith("https:") || new URL(url).hostname === "127.0.0.1";

/** Reads parameters from the query or from a form. */
function readParameters({ url, form }: Call): unknown {
  const values = Object.fromEntries([...url.searchParams, ...form]);
  const { allowed_updates: allowed, ...others } = values;
  return allowed === undefined ? others : { ...others, allowed_updates: JSON.parse(allowed) };
}

const success = (result: unknown, description?: string): Answer => ({
  status: 200,
  body: { ok: true, result, ...(description && { description }) },
});

const error = (status: number, description: string): Answer => ({
  status,
  body: { ok: false, error_code: status, description },
});
