import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext } from "./provider.ts";
import { sign } from "./signatures.ts";

/** https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/ */
export const startTrello = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator(options, createTrello);

interface TrelloHook extends Hook {
  readonly secret: string;
  readonly model: string;
  readonly description: string;
  readonly isActive: boolean;
}

function createTrello(context: ProviderContext<TrelloHook>): Provider<TrelloHook> {
  const { hooks, withHook, appSecret } = context;

  const make = (address: string, model: string, description = ""): TrelloHook => ({
    id: context.nextNumber().toString(16).padStart(24, "0"),
    address,
    secret: appSecret,
    model,
    description,
    isActive: true,
  });

  /** Sends HEAD to the address, and returns the error if its response is not 200. */
  async function validate(address: string): Promise<Answer | undefined> {
    const { status } = await context.send(address, { method: "HEAD" });
    return status === 200
      ? undefined
      : invalid(`URL (${address}) did not return 200 status code, got ${status}`);
  }

  async function create(call: Call): Promise<Answer> {
    const { callbackURL: address = "", idModel: model = "", description } = readParameters(call);
    if (!/^[0-9a-f]{24}$/i.test(model)) return invalid("invalid value for idModel");
    if (!URL.canParse(address)) return invalid("A valid callbackURL is required");
    const isSame = (hook: TrelloHook): boolean => hook.address === address && hook.model === model;
    if (hooks.list().some(isSame)) {
      return invalid("A webhook with that callback, model, and token already exists");
    }
    if (hooks.list().length >= context.quota()) return invalid("The token has too many webhooks");
    const failed = await validate(address);
    return failed ?? { status: 200, body: view(hooks.put(make(address, model, description))) };
  }

  const update = withHook(async (hook, call) => {
    const {
      callbackURL: address = hook.address,
      description = hook.description,
      active,
    } = readParameters(call);
    const failed = address === hook.address ? undefined : await validate(address);
    const isActive = active === undefined ? hook.isActive : active === "true";
    return failed ?? { status: 200, body: view(hooks.put({ ...hook, address, description, isActive })) };
  });

  return {
    readToken,
    unauthorized: { status: 401, body: "invalid token" },
    forbidden: { status: 401, body: "unauthorized permission requested" },
    notFound: { status: 404, body: "The requested resource was not found." },
    routes: [
      { step: "create", on: "POST /1/webhooks/?", handle: create },
      {
        step: "list",
        on: "GET /1/tokens/:token/webhooks",
        handle: () => ({ status: 200, body: hooks.list().map(view) }),
      },
      {
        step: "check",
        on: "GET /1/webhooks/:id",
        handle: withHook((hook) => ({ status: 200, body: view(hook) })),
      },
      { step: "update", on: "PUT /1/webhooks/:id", handle: update },
      {
        step: "remove",
        on: "DELETE /1/webhooks/:id",
        handle: withHook(({ id }) => ({ status: hooks.remove(id) ? 200 : 404, body: { _value: null } })),
      },
    ],
    makeForeign: (address) => make(address, "5abbe4b7ddc1b351ef961415"),
    receives: ({ isActive }) => isActive,
    sign: build,
  };
}

function build({ address, secret, model }: TrelloHook, { id, payload, event, nowMs }: Message): Outgoing {
  const body = JSON.stringify({
    model: { id: model, name: "Shop" },
    action: {
      id: id.replaceAll("-", "").slice(0, 24),
      type: event ?? "updateCard",
      date: new Date(nowMs).toISOString(),
      data: payload ?? { card: { name: "Order" } },
    },
  });
  const options = { algorithm: "sha1", encoding: "base64" } as const;
  return {
    headers: {
      "content-type": "application/json",
      "x-trello-webhook": sign(body + address, secret, options),
    },
    body,
  };
}

/** Parameters in the query, or in a JSON body. */
function readParameters({ url, body }: Call): Readonly<Record<string, string>> {
  const json = body.startsWith("{") ? (JSON.parse(body) as Record<string, unknown>) : {};
  return Object.fromEntries([
    ...url.searchParams,
    ...Object.entries(json).map(([name, value]) => [name, String(value)]),
  ]);
}

/** The token is in the query or in the header `Authorization`, next to the API key. */
const readToken = ({ url, headers }: Call): string | undefined =>
  url.searchParams.get("token") ?? /oauth_token="([^"]+)"/.exec(headers.authorization ?? "")?.[1];

const view = ({ id, address, model, description, isActive }: TrelloHook): object => ({
  id,
  description,
  idModel: model,
  callbackURL: address,
  active: isActive,
  consecutiveFailures: 0,
  firstConsecutiveFailDate: null,
});

const invalid = (message: string): Answer => ({ status: 400, body: message });
