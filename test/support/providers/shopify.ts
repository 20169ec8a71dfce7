import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext } from "./provider.ts";
import { sign } from "./signatures.ts";

/** https://shopify.dev/docs/api/admin-rest/latest/resources/webhook. Each webhook has one topic. */
export const startShopify = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator(options, createShopify);

interface ShopifyHook extends Hook {
  readonly events: readonly [topic: string];
  readonly secret: string;
  readonly createdAtMs: number;
}

const TOPICS = ["app/uninstalled", "orders/create", "orders/updated", "products/create", "products/update"];

const createSchema = z.object({
  webhook: z.object({ topic: z.string().optional(), address: z.string().optional() }),
});

function createShopify(context: ProviderContext<ShopifyHook>): Provider<ShopifyHook> {
  const { hooks, withHook, appSecret } = context;

  const make = (address: string, topic: string): ShopifyHook => ({
    id: String(context.nextNumber()),
    address,
    secret: appSecret,
    events: [topic],
    createdAtMs: context.nowMs(),
  });

  const isTaken = (address: string, topic: string): boolean =>
    hooks.list().some((hook) => hook.address === address && hook.events[0] === topic);

  function create(call: Call): Answer {
    const body = call.read(createSchema);
    if (body === undefined) {
      return { status: 400, body: { errors: { webhook: "Required parameter missing or invalid" } } };
    }
    const { topic, address } = body.webhook;
    if (topic === undefined) return invalid({ topic: ["can't be blank"] });
    if (!TOPICS.includes(topic)) {
      const message = `Invalid topic specified: ${topic}. Does it exist? Is there a missing access scope?`;
      return invalid({ topic: [message] });
    }
    if (address === undefined) return invalid({ address: ["can't be blank"] });
    if (!URL.canParse(address)) return invalid({ address: ["is not a valid URL"] });
    if (isTaken(address, topic)) return invalid({ address: ["for this topic has already been taken"] });
    if (hooks.list().length >= context.quota()) {
      return invalid({ base: [`The limit of ${context.quota()} webhooks was reached`] });
    }
    return { status: 201, body: { webhook: view(hooks.put(make(address, topic))) } };
  }

  function list({ url }: Call): Answer {
    const limit = Math.min(Number(url.searchParams.get("limit") ?? 50), 250);
    const sinceId = Number(url.searchParams.get("since_id") ?? 0);
    const address = url.searchParams.get("address");
    const found = hooks
      .list()
      .filter((hook) => Number(hook.id) > sinceId && (address === null || hook.address === address));
    const next = new URL(url);
    next.searchParams.set("since_id", found[limit - 1]?.id ?? "");
    return {
      status: 200,
      headers: found.length > limit ? { link: `<${next}>; rel="next"` } : {},
      body: { webhooks: found.slice(0, limit).map(view) },
    };
  }

  const update = withHook((hook, call) => {
    const { address = hook.address } = call.read(createSchema)?.webhook ?? {};
    if (!URL.canParse(address)) return invalid({ address: ["is not a valid URL"] });
    return { status: 200, body: { webhook: view(hooks.put({ ...hook, address })) } };
  });

  const collection = "/admin/api/:version/webhooks.json";
  const single = "/admin/api/:version/webhooks/:id.json";
  return {
    readToken: ({ headers }) => headers["x-shopify-access-token"],
    unauthorized: {
      status: 401,
      body: { errors: "[API] Invalid API key or access token (unrecognized login or wrong password)" },
    },
    forbidden: {
      status: 403,
      body: { errors: "[API] This action requires merchant approval for read_orders scope." },
    },
    notFound: { status: 404, body: { errors: "Not Found" } },
    routes: [
      { step: "create", on: `POST ${collection}`, handle: create },
      { step: "list", on: `GET ${collection}`, handle: list },
      {
        step: "check",
        on: `GET ${single}`,
        handle: withHook((hook) => ({ status: 200, body: { webhook: view(hook) } })),
      },
      { step: "update", on: `PUT ${single}`, handle: update },
      {
        step: "remove",
        on: `DELETE ${single}`,
        handle: withHook(({ id }) => ({ status: hooks.remove(id) ? 200 : 404, body: {} })),
      },
    ],
    makeForeign: (address) => make(address, "orders/create"),
    sign: build,
  };
}

function build({ secret, events }: ShopifyHook, { id, payload, nowMs }: Message): Outgoing {
  const body = JSON.stringify(payload ?? { id: 820_982_911_946_154, email: "jon@example.com" });
  return {
    headers: {
      "content-type": "application/json",
      "user-agent": "Shopify-Captain-Hook",
      "x-shopify-topic": events[0],
      "x-shopify-hmac-sha256": sign(body, secret, { encoding: "base64" }),
      "x-shopify-shop-domain": "acme.myshopify.com",
      "x-shopify-api-version": "2026-01",
      "x-shopify-webhook-id": id,
      "x-shopify-event-id": id,
      "x-shopify-triggered-at": new Date(nowMs).toISOString(),
    },
    body,
  };
}

const view = ({ id, address, events, createdAtMs }: ShopifyHook): object => ({
  id: Number(id),
  address,
  topic: events[0],
  created_at: new Date(createdAtMs).toISOString(),
  updated_at: new Date(createdAtMs).toISOString(),
  format: "json",
  fields: [],
  metafield_namespaces: [],
  api_version: "2026-01",
  private_metafield_namespaces: [],
});

const invalid = (errors: Readonly<Record<string, readonly string[]>>): Answer => ({
  status: 422,
  body: { errors },
});
