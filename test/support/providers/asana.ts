import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext } from "./provider.ts";
import { sign } from "./signatures.ts";

/** https://developers.asana.com/docs/webhooks-guide */
export const startAsana = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator(options, createAsana);

interface AsanaHook extends Hook {
  readonly secret: string;
  readonly resource: string;
  readonly filters: readonly object[];
  readonly createdAtMs: number;
}

const MAX_WEBHOOKS_PER_RESOURCE = 1_000;

const filters = z.array(z.looseObject({ resource_type: z.string().optional() }));
const createSchema = z.object({
  data: z.object({ resource: z.string().min(1), target: z.url(), filters: filters.default([]) }),
});
const updateSchema = z.object({ data: z.object({ filters }) });

function createAsana(context: ProviderContext<AsanaHook>): Provider<AsanaHook> {
  const { hooks, withHook } = context;

  const make = (address: string, resource: string, ofFilters: readonly object[] = []): AsanaHook => ({
    id: String(context.nextNumber()),
    address,
    secret: randomBytes(32).toString("hex"),
    resource,
    filters: ofFilters,
    createdAtMs: context.nowMs(),
  });

  async function create(call: Call): Promise<Answer> {
    const body = call.read(createSchema);
    if (body === undefined) return error(400, "resource: Missing input");
    const { resource, target, filters: ofFilters } = body.data;
    const isSame = (hook: AsanaHook): boolean => hook.resource === resource && hook.address === target;
    if (hooks.list().some(isSame)) {
      return error(
        403,
        "Duplicated webhook. You already have an existing webhook for the given resource and target. Delete the old one before creating another.",
      );
    }
    if (hooks.list().length >= context.quota()) {
      return error(403, `You have reached the limit of ${context.quota()} webhooks for this resource.`);
    }
    const hook = make(target, resource, ofFilters);
    const { status, headers } = await context.send(target, {
      headers: { "content-type": "application/json", "x-hook-secret": hook.secret },
      body: "{}",
    });
    if (status !== 200 && status !== 204) {
      return error(
        400,
        `The remote server which is intended to receive the webhook responded with an incorrect HTTP status code: ${status}`,
      );
    }
    if (headers.get("x-hook-secret") !== hook.secret) {
      return error(400, "The remote server did not respond with the handshake secret.");
    }
    hooks.put(hook);
    return { status: 201, body: { data: view(hook), "X-Hook-Secret": hook.secret } };
  }

  function list({ url }: Call): Answer {
    if (!url.searchParams.has("workspace")) return error(400, "workspace: Missing input");
    const resource = url.searchParams.get("resource");
    const limit = Math.min(Number(url.searchParams.get("limit") ?? 20), 100);
    const offset = Number(url.searchParams.get("offset") ?? 0);
    const found = hooks.list().filter((hook) => resource === null || hook.resource === resource);
    const next = new URL(url);
    next.searchParams.set("offset", String(offset + limit));
    const isLast = found.length <= offset + limit;
    return {
      status: 200,
      body: {
        data: found.slice(offset, offset + limit).map(view),
        next_page: isLast
          ? null
          : { offset: String(offset + limit), path: next.pathname + next.search, uri: String(next) },
      },
    };
  }

  const update = withHook((hook, call) => {
    const body = call.read(updateSchema);
    if (body === undefined) return error(400, "filters: Missing input");
    return { status: 200, body: { data: view(hooks.put({ ...hook, filters: body.data.filters })) } };
  });

  const collection = "/api/1.0/webhooks";
  return {
    quota: MAX_WEBHOOKS_PER_RESOURCE,
    unauthorized: error(401, "Not Authorized"),
    forbidden: error(403, "Forbidden"),
    notFound: error(404, "No matching route for request"),
    gone: (id) => error(404, `webhook: Unknown object: ${id}`),
    routes: [
      { step: "create", on: `POST ${collection}`, handle: create },
      { step: "list", on: `GET ${collection}`, handle: list },
      {
        step: "check",
        on: `GET ${collection}/:id`,
        handle: withHook((hook) => ({ status: 200, body: { data: view(hook) } })),
      },
      { step: "update", on: `PUT ${collection}/:id`, handle: update },
      {
        step: "remove",
        on: `DELETE ${collection}/:id`,
        handle: withHook(({ id }) => ({ status: hooks.remove(id) ? 200 : 404, body: { data: {} } })),
      },
    ],
    makeForeign: (address) => make(address, "1331"),
    sign: build,
  };
}

function build({ secret, resource }: AsanaHook, { id, payload, event, nowMs }: Message): Outgoing {
  const change = {
    action: event ?? "changed",
    resource: { gid: id, resource_type: "task" },
    parent: { gid: resource, resource_type: "project" },
    created_at: new Date(nowMs).toISOString(),
  };
  const body = JSON.stringify({ events: [payload ?? change] });
  return {
    headers: { "content-type": "application/json", "x-hook-signature": sign(body, secret) },
    body,
  };
}

const view = ({ id, address, resource, filters: ofFilters, createdAtMs }: AsanaHook): object => ({
  gid: id,
  resource_type: "webhook",
  active: true,
  resource: { gid: resource, resource_type: "project", name: "Shop" },
  target: address,
  created_at: new Date(createdAtMs).toISOString(),
  filters: ofFilters,
  last_failure_at: null,
  last_failure_content: null,
  last_success_at: new Date(createdAtMs).toISOString(),
});

const error = (status: number, message: string): Answer => ({
  status,
  body: { errors: [{ message, help: "For more information on API status codes and how to handle them" }] },
});
