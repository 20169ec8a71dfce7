import { randomBytes } from "node:crypto";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { readBasic, readBearer, startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext } from "./provider.ts";
import { sign } from "./signatures.ts";

/** https://docs.stripe.com/api/webhook_endpoints */
export const startStripe = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator(options, createStripe);

interface StripeHook extends Hook {
  readonly events: readonly string[];
  readonly secret: string;
  readonly status: "enabled" | "disabled";
  readonly createdAtMs: number;
}

const MAX_ENDPOINTS = 16;

function createStripe(context: ProviderContext<StripeHook>): Provider<StripeHook> {
  const { hooks, withHook } = context;
  const idempotent = new Map<string, Answer>();

  const make = (address: string, events: readonly string[]): StripeHook => ({
    id: `we_${context.nextNumber()}`,
    address,
    secret: `whsec_${randomBytes(24).toString("hex")}`,
    events,
    status: "enabled",
    createdAtMs: context.nowMs(),
  });

  function create(call: Call): Answer {
    const key = call.headers["idempotency-key"];
    const earlier = key === undefined ? undefined : idempotent.get(key);
    const answer = earlier ?? createOnce(call);
    if (key !== undefined) idempotent.set(key, answer);
    return answer;
  }

  function createOnce({ form }: Call): Answer {
    const url = form.get("url");
    const events = readEvents(form);
    if (url === null) return missing("url");
    if (!URL.canParse(url)) return invalid(`Invalid URL: ${url}`, { code: "url_invalid", param: "url" });
    if (events.length === 0) return missing("enabled_events");
    if (hooks.list().length >= context.quota())
      return invalid(`You have reached the maximum of ${context.quota()} test webhook endpoints.`);
    const hook = hooks.put(make(url, events));
    return { status: 200, body: { ...view(hook), secret: hook.secret } };
  }

  function list({ url: { searchParams } }: Call): Answer {
    const limit = Number(searchParams.get("limit") ?? 10);
    if (limit < 1 || limit > 100)
      return invalid("This value must be greater than or equal to 1.", { param: "limit" });
    const newestFirst = hooks.list().toReversed();
    const after = newestFirst.findIndex(({ id }) => id === searchParams.get("starting_after"));
    const rest = newestFirst.slice(after + 1);
    return {
      status: 200,
      body: {
        object: "list",
        url: "/v1/webhook_endpoints",
        has_more: rest.length > limit,
        data: rest.slice(0, limit).map(view),
      },
    };
  }

  const update = withHook((hook, { form }) => {
    const events = readEvents(form);
    const disabled = form.get("disabled");
    const changed: StripeHook = {
      ...hook,
      address: form.get("url") ?? hook.address,
      events: events.length > 0 ? events : hook.events,
      status: disabled === null ? hook.status : disabled === "true" ? "disabled" : "enabled",
    };
    return { status: 200, body: view(hooks.put(changed)) };
  });

  return {
    quota: MAX_ENDPOINTS,
    readToken: (call) => readBearer(call) ?? readBasic(call, "user"),
    unauthorized: invalid("Invalid API Key provided: sk_test_****", { status: 401 }),
    forbidden: invalid("The provided key does not have the required permissions for this endpoint.", {
      status: 403,
    }),
    notFound: invalid("Unrecognized request URL", { status: 404 }),
    gone: (id) =>
      invalid(`No such webhook endpoint: '${id}'`, {
        status: 404,
        code: "resource_missing",
        param: "webhook_endpoint",
      }),
    routes: [
      { step: "create", on: "POST /v1/webhook_endpoints", handle: create },
      { step: "list", on: "GET /v1/webhook_endpoints", handle: list },
      {
        step: "check",
        on: "GET /v1/webhook_endpoints/:id",
        handle: withHook((hook) => ({ status: 200, body: view(hook) })),
      },
      { step: "update", on: "POST /v1/webhook_endpoints/:id", handle: update },
      {
        step: "remove",
        on: "DELETE /v1/webhook_endpoints/:id",
        handle: withHook(({ id }) => ({
          status: 200,
          body: { id, object: "webhook_endpoint", deleted: hooks.remove(id) },
        })),
      },
    ],
    makeForeign: (address) => make(address, ["*"]),
    receives: ({ status, events }, event) =>
      status === "enabled" && (event === undefined || events.includes("*") || events.includes(event)),
    sign: build,
  };
}

function build({ secret }: StripeHook, { id, payload, event, nowMs }: Message): Outgoing {
  const seconds = Math.floor(nowMs / 1_000);
  const body = JSON.stringify({
    id: `evt_${id.replaceAll("-", "")}`,
    object: "event",
    created: seconds,
    type: event === undefined || event === "*" ? "charge.succeeded" : event,
    livemode: false,
    pending_webhooks: 1,
    data: { object: payload ?? { id: "ch_1", object: "charge", amount: 2_000 } },
  });
  return {
    headers: {
      "content-type": "application/json; charset=utf-8",
      "user-agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
      "stripe-signature": `t=${seconds},v1=${sign(`${seconds}.${body}`, secret)}`,
    },
    body,
  };
}

const view = ({ id, address, events, status, createdAtMs }: StripeHook): object => ({
  id,
  object: "webhook_endpoint",
  api_version: null,
  application: null,
  created: Math.floor(createdAtMs / 1_000),
  description: null,
  enabled_events: events,
  livemode: false,
  metadata: {},
  status,
  url: address,
});

/** Reads the fields `enabled_events[]` or `enabled_events[0]`, `enabled_events[1]` and so on. */
const readEvents = (form: URLSearchParams): readonly string[] =>
  [...form].filter(([name]) => /^enabled_events\[\d*\]$/.test(name)).map(([, value]) => value);

const invalid = (
  message: string,
  { status = 400, ...details }: { status?: number; code?: string; param?: string } = {},
): Answer => ({ status, body: { error: { ...details, message, type: "invalid_request_error" } } });

const missing = (param: string): Answer =>
  invalid(`Missing required param: ${param}.`, { code: "parameter_missing", param });
