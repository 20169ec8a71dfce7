import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { readBearer, startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext, Route } from "./provider.ts";

/** https://docs.gitlab.com/api/project_webhooks/ and https://docs.gitlab.com/api/group_webhooks/ */
export const startGitLab = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator(options, createGitLab);

interface GitLabHook extends Hook {
  /** Path of the project or group. */
  readonly owner: string;
  readonly events: readonly string[];
  readonly createdAtMs: number;
}

const MAX_HOOKS = 100;

/** Types of events, by the fields that select them. */
const EVENTS: Readonly<Record<string, string>> = {
  push_events: "Push Hook",
  tag_push_events: "Tag Push Hook",
  issues_events: "Issue Hook",
  confidential_issues_events: "Confidential Issue Hook",
  merge_requests_events: "Merge Request Hook",
  note_events: "Note Hook",
  confidential_note_events: "Confidential Note Hook",
  job_events: "Job Hook",
  pipeline_events: "Pipeline Hook",
  wiki_page_events: "Wiki Page Hook",
  deployment_events: "Deployment Hook",
  feature_flag_events: "Feature Flag Hook",
  releases_events: "Release Hook",
  milestone_events: "Milestone Hook",
  emoji_events: "Emoji Hook",
};

const bodySchema = z.looseObject({ url: z.string(), token: z.string().optional() });

function createGitLab(context: ProviderContext<GitLabHook>): Provider<GitLabHook> {
  const { hooks, withHook } = context;

  function save(call: Call, existing?: GitLabHook): Answer {
    const body = call.read(bodySchema);
    if (body === undefined) return { status: 400, body: { error: "url is missing" } };
    if (!URL.canParse(body.url)) return { status: 422, body: { error: "Invalid url given" } };
    const owner = call.url.pathname.replace(/\/hooks(\/.*)?$/, "");
    const ofOwner = hooks.list().filter((hook) => hook.owner === owner);
    if (existing === undefined && ofOwner.length >= context.quota()) {
      const message = `Maximum number of project hooks (${context.quota()}) exceeded`;
      return { status: 422, body: { message: { base: [message] } } };
    }
    const isSelected = (name: string): boolean =>
      Boolean(body[name] ?? existing?.events.includes(EVENTS[name] ?? "") ?? name === "push_events");
    const hook = hooks.put({
      id: existing?.id ?? String(context.nextNumber()),
      address: body.url,
      secret: body.token ?? existing?.secret,
      events: Object.keys(EVENTS)
        .filter(isSelected)
        .map((name) => EVENTS[name] ?? ""),
      owner,
      createdAtMs: existing?.createdAtMs ?? context.nowMs(),
    });
    return { status: existing === undefined ? 201 : 200, body: view(hook) };
  }

  function list({ url }: Call): Answer {
    const owner = url.pathname.replace(/\/hooks$/, "");
    const size = Math.min(Number(url.searchParams.get("per_page") ?? 20), 100);
    const page = Number(url.searchParams.get("page") ?? 1);
    const ofOwner = hooks.list().filter((hook) => hook.owner === owner);
    const next = new URL(url);
    next.searchParams.set("page", String(page + 1));
    return {
      status: 200,
      headers: ofOwner.length > page * size ? { link: `<${next}>; rel="next"` } : {},
      body: ofOwner.slice((page - 1) * size, page * size).map(view),
    };
  }

  return {
    quota: MAX_HOOKS,
    readToken: (call) => call.headers["private-token"] ?? readBearer(call),
    unauthorized: { status: 401, body: { message: "401 Unauthorized" } },
    forbidden: {
      status: 403,
      body: {
        error: "insufficient_scope",
        error_description: "The request requires higher privileges than provided by the access token.",
        scope: "api",
      },
    },
    notFound: { status: 404, body: { message: "404 Not found" } },
    routes: ["/api/v4/projects/:owner", "/api/v4/groups/:owner"].flatMap((owner): readonly Route[] => [
      { step: "create", on: `POST ${owner}/hooks`, handle: (call) => save(call) },
      { step: "list", on: `GET ${owner}/hooks`, handle: list },
      {
        step: "check",
        on: `GET ${owner}/hooks/:id`,
        handle: withHook((hook) => ({ status: 200, body: view(hook) })),
      },
      { step: "update", on: `PUT ${owner}/hooks/:id`, handle: withHook((hook, call) => save(call, hook)) },
      {
        step: "remove",
        on: `DELETE ${owner}/hooks/:id`,
        handle: withHook(({ id }) => ({ status: hooks.remove(id) ? 204 : 404 })),
      },
    ]),
    makeForeign: (address) => ({
      id: String(context.nextNumber()),
      address,
      secret: "token of another program",
      events: ["Push Hook"],
      owner: "/api/v4/projects/acme%2Fshop",
      createdAtMs: context.nowMs(),
    }),
    sign: build,
  };
}

const view = ({ id, address, events, createdAtMs }: GitLabHook): object => ({
  id: Number(id),
  url: address,
  created_at: new Date(createdAtMs).toISOString(),
  alert_status: "executable",
  disabled_until: null,
  enable_ssl_verification: true,
  ...Object.fromEntries(Object.entries(EVENTS).map(([name, event]) => [name, events.includes(event)])),
});

function build({ secret }: GitLabHook, { id, payload, event }: Message): Outgoing {
  return {
    headers: {
      "content-type": "application/json",
      "user-agent": "GitLab/18.5.0",
      "idempotency-key": id,
      "x-gitlab-event": event ?? "Push Hook",
      "x-gitlab-event-uuid": randomUUID(),
      "x-gitlab-webhook-uuid": randomUUID(),
      "x-gitlab-instance": "https://gitlab.com",
      ...(secret && { "x-gitlab-token": secret }),
    },
    body: JSON.stringify(payload ?? { object_kind: "push", checkout_sha: id }),
  };
}
