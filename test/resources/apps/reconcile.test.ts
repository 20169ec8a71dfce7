import { describe, expect, it } from "vitest";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(() => startTestSpine());

const HOOK = { uid: "hook", kind: "webhook", config: {}, events: [{ type: "e", idPath: "$.id" }] };
const POLL = {
  uid: "poll",
  kind: "polling",
  config: {
    reconciles: "hook",
    request: { url: "https://api.example/events" },
    discriminator: { by: "timestamp", path: "$.at", lookBackSeconds: 600 },
  },
};

type Changes = Readonly<Record<string, unknown>>;
const hook = (config: Changes = {}, events: readonly object[] = HOOK.events) => ({ ...HOOK, config, events });
const poll = (config: Changes = {}) => ({ ...POLL, config: { ...POLL.config, ...config } });

/** Tries to write the channels in each way, and returns the errors of each. */
async function write(webhook: ReturnType<typeof hook>, source: ReturnType<typeof poll>) {
  const call = spine.api.call;
  const details = (answer: { readonly body: { readonly details?: readonly object[] } }) =>
    answer.body.details;
  const blueprint = await call("POST", "/blueprints", { title: "b", channels: [webhook, source] });
  const app = await spine.install(webhook);
  const created = await call("POST", `/apps/${app.id}/channels`, source);
  const valid = await spine.install(hook(), { ...POLL, config: { ...POLL.config } });
  const { uid: _, kind: __, ...content } = webhook;
  const changed = await call("PUT", `/apps/${valid.id}/channels/hook`, content);
  return { blueprint: details(blueprint), created: details(created), changed: details(changed) };
}

describe("a polling channel with `reconciles`", () => {
  it("is accepted with a webhook channel of the same app, and needs no definitions", async () => {
    const app = await spine.install(HOOK, POLL);
    const channel = await spine.api.call.get(`/apps/${app.id}/channels/poll`);
    expect(channel).toMatchObject({ events: [], config: { reconciles: "hook" } });
    expect(channel.config).not.toHaveProperty("settleSeconds");
  });

  it.each([
    ["an unknown channel", "other", "there is no channel other"],
    ["a polling channel", "source", "source is a polling channel"],
    ["a CloudEvents channel", "ce", "ce is a cloudevents channel"],
  ])("must not name %s", async (_, reconciles, problem) => {
    const others = [
      { ...POLL, uid: "source", config: { ...POLL.config, reconciles: undefined }, events: [{ type: "e" }] },
      { uid: "ce", kind: "cloudevents", events: [{ type: "e" }] },
    ];
    const app = await spine.install(...others);
    const message = `must be the uid of a webhook channel of the same app, but ${problem}`;
    const source = poll({ reconciles });
    const created = await spine.api.call("POST", `/apps/${app.id}/channels`, source);
    expect([created.status, created.body.details]).toEqual([400, [{ path: "config.reconciles", message }]]);
    const channels = [...others, source];
    const blueprint = await spine.api.call("POST", "/blueprints", { title: "b", channels });
    expect(blueprint.body.details).toContainEqual({ path: "channels[2].config.reconciles", message });
  });

  it.each([
    [{ discriminator: { by: "seenSet" } }, "discriminator.by", "must be timestamp with `reconciles`"],
    [{ expectEverySeconds: 60 }, "expectEverySeconds", "must not be set with `reconciles`"],
    [{ reconciles: undefined, as: {} }, "as", "requires `reconciles`"],
    [{ reconciles: undefined, match: "id" }, "match", "requires `reconciles`"],
    [{ reconciles: undefined, settleSeconds: 0 }, "settleSeconds", "requires `reconciles`"],
    [{ as: { body: "text" } }, "as.body", "must be a path that begins with $"],
    [{ as: { body: { id: "$[" } } }, "as.body.id", ""],
    [{ as: { headers: { "x-id": "$[" } } }, "as.headers.x-id", ""],
  ])("rejects %o", async (config, path, message) => {
    const app = await spine.install(HOOK);
    const { status, body } = await spine.api.call("POST", `/apps/${app.id}/channels`, poll(config));
    expect(status).toBe(400);
    expect(body.details).toContainEqual({
      path: expect.stringContaining(`config.${path}`),
      message: expect.stringContaining(message),
    });
  });

  it("rejects definitions of its own", async () => {
    const app = await spine.install(HOOK);
    const source = { ...POLL, events: [{ type: "e" }] };
    const { body } = await spine.api.call("POST", `/apps/${app.id}/channels`, source);
    expect(body.details).toMatchObject([
      { path: "events", message: expect.stringContaining("must be empty") },
    ]);
  });
});

describe("both channels are checked together, whichever of them is written", () => {
  it.each([
    {
      webhook: hook({ dedupe: { windowSeconds: 0 } }),
      inSource: ["config.reconciles", "`config.dedupe.windowSeconds` must not be 0"],
      inHook: [
        "config.dedupe.windowSeconds",
        "must not be 0, because the channel poll reconciles this channel",
      ],
    },
    {
      webhook: hook({ dedupe: { by: "content" } }),
      inSource: ["config.reconciles", "`config.dedupe.by` must be id"],
      inHook: ["config.dedupe.by", "must be id"],
    },
    {
      webhook: hook({ dedupe: { onConflict: "publish" } }),
      inSource: ["config.reconciles", "`config.dedupe.onConflict` must not be publish"],
      inHook: ["config.dedupe.onConflict", "must not be publish"],
    },
    {
      webhook: hook({ dedupe: { windowSeconds: 500 } }),
      inSource: ["config.discriminator.lookBackSeconds", "must be at most 500"],
      inHook: ["config.dedupe.windowSeconds", "must be at least 600"],
    },
    {
      webhook: hook({}, [{ type: "e" }]),
      inSource: ["config.reconciles", "`events[0].idPath` must be set"],
      inHook: ["events[0].idPath", "must be set"],
    },
    {
      webhook: hook({}, [{ type: "e", idPath: "$headers['X-Id']" }]),
      inSource: ["config.as.headers", "must supply x-id, which `events[0].idPath` of the channel hook reads"],
      inHook: ["events[0].idPath", "must not read x-id, which `as` does not supply"],
    },
    {
      webhook: hook({}, [
        { type: "e", idPath: "$.id", when: { properties: { headers: { required: ["x-kind"] } } } },
      ]),
      inSource: ["config.as.headers", "must supply x-kind, which `events[0].when` of the channel hook reads"],
      inHook: ["events[0].when", "must not read x-kind, which `as` does not supply"],
    },
    {
      webhook: hook({}, [{ type: "e", idPath: "$.id", typePath: "$query.type" }]),
      inSource: ["config.as.query", "must supply type"],
      inHook: ["events[0].typePath", "must not read type"],
    },
  ])("$inHook.0 $inHook.1", async ({ inHook, inSource, webhook }) => {
    const errors = await write(webhook, poll());
    const [path, message] = inSource;
    const finding = { path, message: expect.stringContaining(message ?? "") };
    expect(errors.created).toEqual([finding]);
    expect(errors.blueprint).toContainEqual({ ...finding, path: `channels[1].${path}` });
    expect(errors.changed).toEqual([{ path: inHook[0], message: expect.stringContaining(inHook[1] ?? "") }]);
  });

  it("with a shorter window than `settleSeconds`", async () => {
    const app = await spine.install(hook({ dedupe: { windowSeconds: 1000 } }));
    const source = poll({ settleSeconds: 1000 });
    const { body } = await spine.api.call("POST", `/apps/${app.id}/channels`, source);
    expect(body.details).toMatchObject([{ path: "config.settleSeconds" }]);
  });

  it("with a channel of another kind that replaces a deleted webhook channel", async () => {
    const app = await spine.install(hook(), poll());
    await spine.api.call("DELETE", `/apps/${app.id}/channels/hook`);
    const { body } = await spine.api.call("POST", `/apps/${app.id}/channels`, {
      uid: "hook",
      kind: "cloudevents",
      events: [{ type: "e" }],
    });
    expect(body.details).toEqual([
      { path: "kind", message: "must be webhook, because the channel poll reconciles this channel" },
    ]);
  });

  it("with the paths of a preset, which an unnamed definition inherits", async () => {
    const app = await spine.install({ uid: "hook", kind: "webhook", config: { preset: "github" } });
    const create = (as: object) => spine.api.call("POST", `/apps/${app.id}/channels`, poll({ as }));
    const rejected = await create({ headers: { "x-github-event": "push" } });
    expect(rejected.body.details).toMatchObject([
      { path: "config.as.headers", message: expect.stringContaining("must supply x-github-delivery") },
    ]);
    const { status } = await create({ headers: { "X-GitHub-Delivery": "$.guid" } });
    expect(status).toBe(200);
  });

  it("at an upgrade that would break a channel which a person has added", async () => {
    const { call } = spine.api;
    const blueprint = await call.post("/blueprints", { title: "b", channels: [HOOK] });
    const app = await call.post("/apps/install", { blueprintId: blueprint.id });
    await call.post(`/apps/${app.id}/channels`, POLL);
    const channels = [hook({ dedupe: { windowSeconds: 0 } })];
    await call.put(`/blueprints/${blueprint.id}`, { channels });
    const upgraded = await call("POST", `/apps/${app.id}/upgrade`, {});
    expect([upgraded.status, upgraded.body.details]).toMatchObject([
      409,
      [{ path: "channels[0].config.dedupe.windowSeconds" }],
    ]);
  });
});
