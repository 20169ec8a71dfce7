import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext, Route } from "./provider.ts";
import { sign } from "./signatures.ts";

/** https://docs.github.com/en/rest/repos/webhooks and https://docs.github.com/en/rest/orgs/webhooks */
export const startGitHub = (
  options: EmulatorOptions & {
    /** Repository or organization of the webhooks of other programs. */
    readonly owner?: string;
  },
): Promise<Emulator> =>
  startEmulator<GitHubHook>(options, (context) => createGitHub(context, options.owner ?? "/repos/acme/shop"));

interface GitHubHook extends Hook {
  readonly events: readonly string[];
  /** Path of the repository or organization. */
  readonly owner: string;
  readonly isActive: boolean;
  readonly contentType: "json" | "form";
  readonly createdAt: string;
}

const MAX_HOOKS_PER_EVENT = 20;

const configSchema = z.object({
  url: z.url().optional(),
  content_type: z.enum(["json", "form"]).default("form"),
  secret: z.string().optional(),
});
const createSchema = z.object({
  name: z.string().optional(),
  active: z.boolean().default(true),
  events: z.array(z.string()).min(1).default(["push"]),
  config: configSchema.optional(),
});
const updateSchema = z.object({
  active: z.boolean().optional(),
  events: z.array(z.string()).min(1).optional(),
  add_events: z.array(z.string()).default([]),
  remove_events: z.array(z.string()).default([]),
  config: configSchema.optional(),
});

function createGitHub(context: ProviderContext<GitHubHook>, foreignOwner: string): Provider<GitHubHook> {
  const { hooks, send } = context;

  const at = (owner: string): readonly GitHubHook[] => hooks.list().filter((hook) => hook.owner === owner);
  const withHook = (handle: (hook: GitHubHook, call: Call) => Answer): Route["handle"] =>
    context.withHook((hook, call) => (hook.owner === ownerOf(call) ? handle(hook, call) : NOT_FOUND));

  function create(call: Call): Answer {
    const body = call.read(createSchema);
    const owner = ownerOf(call);
    if (body === undefined) return invalid("Invalid request.");
    if (body.name !== undefined ? body.name !== "web" : owner.startsWith("/orgs/"))
      return invalid({ resource: "Hook", code: "invalid", field: "name" });
    const { url, secret, content_type: contentType } = body.config ?? configSchema.parse({});
    if (url === undefined) return custom("Config must contain URL for webhooks");
    const hook: GitHubHook = {
      id: String(context.nextNumber()),
      address: url,
      secret,
      events: body.events,
      owner,
      isActive: body.active,
      contentType,
      createdAt: new Date(context.nowMs()).toISOString(),
    };
    const conflict = findConflict(hook);
    if (conflict !== undefined) return conflict;
    hooks.put(hook);
    return { status: 201, body: view(hook), after: () => ping(hook) };
  }

  function findConflict(hook: GitHubHook): Answer | undefined {
    const others = at(hook.owner).filter(({ id }) => id !== hook.id);
    const overlapping = others.filter(({ events }) => overlaps(events, hook.events));
    if (overlapping.some(({ address }) => address === hook.address)) {
      return custom(`Hook already exists on this ${kindOf(hook.owner).toLowerCase()}`);
    }
    const full = hook.events.filter(
      (event) => others.filter(({ events }) => events.includes(event)).length >= context.quota(),
    );
    return full.length === 0
      ? undefined
      : custom(...full.map((event) => `The "${event}" event cannot have more than ${context.quota()} hooks`));
  }

  function list(call: Call): Answer {
    const size = Math.min(Number(call.url.searchParams.get("per_page") ?? 30), 100);
    const page = Number(call.url.searchParams.get("page") ?? 1);
    const all = at(ownerOf(call));
    const next = new URL(call.url);
    next.searchParams.set("page", String(page + 1));
    const headers = all.length > page * size ? { link: `<${next}>; rel="next"` } : {};
    return { status: 200, headers, body: all.slice((page - 1) * size, page * size).map(view) };
  }

  const update = withHook((hook, call) => {
    const body = call.read(updateSchema);
    if (body === undefined) return invalid("Invalid request.");
    const { config, events = hook.events, add_events: added, remove_events: removed } = body;
    const changed: GitHubHook = {
      ...hook,
      isActive: body.active ?? hook.isActive,
      events: [...new Set([...events, ...added])].filter((event) => !removed.includes(event)),
      ...(config?.url && {
        address: config.url,
        secret: config.secret,
        contentType: config.content_type,
      }),
    };
    const conflict = findConflict(changed);
    return conflict ?? { status: 200, body: view(hooks.put(changed)) };
  });

  const view = (hook: GitHubHook): object => {
    const url = `${context.origin}${hook.owner}/hooks/${hook.id}`;
    return {
      type: kindOf(hook.owner),
      id: Number(hook.id),
      name: "web",
      active: hook.isActive,
      events: hook.events,
      config: {
        url: hook.address,
        content_type: hook.contentType,
        insecure_ssl: "0",
        ...(hook.secret && { secret: "********" }),
      },
      created_at: hook.createdAt,
      updated_at: hook.createdAt,
      url,
      ping_url: `${url}/pings`,
      deliveries_url: `${url}/deliveries`,
      last_response: { code: null, status: "unused", message: null },
    };
  };

  const ping = (hook: GitHubHook): Promise<unknown> =>
    send(
      hook.address,
      build(hook, {
        id: crypto.randomUUID(),
        event: "ping",
        payload: { zen: "Design for failure.", hook_id: Number(hook.id), hook: view(hook) },
        nowMs: context.nowMs(),
      }),
    );

  return {
    quota: MAX_HOOKS_PER_EVENT,
    unauthorized: {
      status: 401,
      body: { message: "Bad credentials", documentation_url: DOCS, status: "401" },
    },
    // GitHub hides repositories from tokens without the scope.
    forbidden: ({ url }) => ({
      ...NOT_FOUND,
      headers: {
        "x-oauth-scopes": "read:user",
        "x-accepted-oauth-scopes": url.pathname.startsWith("/orgs/")
          ? "admin:org_hook"
          : "admin:repo_hook, public_repo, repo, write:repo_hook",
      },
    }),
    notFound: NOT_FOUND,
    routes: ["/repos/:owner/:repo", "/orgs/:org"].flatMap((owner): readonly Route[] => [
      { step: "create", on: `POST ${owner}/hooks`, handle: create },
      { step: "list", on: `GET ${owner}/hooks`, handle: list },
      {
        step: "check",
        on: `GET ${owner}/hooks/:id`,
        handle: withHook((hook) => ({ status: 200, body: view(hook) })),
      },
      { step: "update", on: `PATCH ${owner}/hooks/:id`, handle: update },
      {
        step: "check",
        on: `POST ${owner}/hooks/:id/pings`,
        handle: withHook((hook) => ({ status: 204, after: () => ping(hook) })),
      },
      {
        step: "remove",
        on: `DELETE ${owner}/hooks/:id`,
        handle: withHook(({ id }) => ({ status: hooks.remove(id) ? 204 : 404 })),
      },
    ]),
    makeForeign: (address) => ({
      id: String(context.nextNumber()),
      address,
      secret: "secret of another program",
      events: ["push"],
      owner: foreignOwner,
      isActive: true,
      contentType: "json",
      createdAt: new Date(context.nowMs()).toISOString(),
    }),
    receives: ({ isActive, events }, event) => isActive && (event === undefined || overlaps(events, [event])),
    sign: build,
  };
}

function build(hook: GitHubHook, { id, payload, event, nowMs }: Message): Outgoing {
  const json = JSON.stringify(payload ?? { ref: "refs/heads/main", pushed_at: Math.floor(nowMs / 1_000) });
  const isForm = hook.contentType === "form";
  const body = isForm ? new URLSearchParams({ payload: json }).toString() : json;
  return {
    headers: {
      "content-type": isForm ? "application/x-www-form-urlencoded" : "application/json",
      "user-agent": "GitHub-Hookshot/044aadd",
      "x-github-delivery": id,
      "x-github-event": event === undefined || event === "*" ? "push" : event,
      "x-github-hook-id": hook.id,
      "x-github-hook-installation-target-type": kindOf(hook.owner).toLowerCase(),
      ...(hook.secret && {
        "x-hub-signature": `sha1=${sign(body, hook.secret, { algorithm: "sha1" })}`,
        "x-hub-signature-256": `sha256=${sign(body, hook.secret)}`,
      }),
    },
    body,
  };
}

const DOCS = "https://docs.github.com/rest";
const NOT_FOUND: Answer = {
  status: 404,
  body: { message: "Not Found", documentation_url: DOCS, status: "404" },
};

const invalid = (...errors: readonly (object | string)[]): Answer => ({
  status: 422,
  body: { message: "Validation Failed", errors, documentation_url: DOCS, status: "422" },
});

const custom = (...messages: readonly string[]): Answer =>
  invalid(...messages.map((message) => ({ resource: "Hook", code: "custom", message })));

const ownerOf = ({ url }: Call): string => url.pathname.replace(/\/hooks(\/.*)?$/, "");
const kindOf = (owner: string): string => (owner.startsWith("/orgs/") ? "Organization" : "Repository");
const overlaps = (some: readonly string[], others: readonly string[]): boolean =>
  some.includes("*") || others.includes("*") || some.some((event) => others.includes(event));
