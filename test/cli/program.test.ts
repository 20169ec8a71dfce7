import { mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands/command-list.ts";
import { escapeJson, escapeText } from "../../src/cli/output/escape.ts";
import { fitTo, widthOf } from "../../src/cli/output/width.ts";
import { runInlet } from "../support/command.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";
import { NOBODY, openedCommands, rows } from "./opened-commands.ts";

const { dir, world, run, post } = openedCommands();

describe("each command", () => {
  it.each(
    COMMANDS.map(({ name }) => name),
  )("shows its arguments and two examples in its --help: %s", async (name) => {
    const { code, stdout } = await runInlet([name, "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`Usage: inlet ${name}`);
    const shown = stdout.split("\n").filter((line) => line.startsWith("  $ "));
    expect(shown.length).toBeGreaterThanOrEqual(2);
    for (const line of shown) expect(line).toMatch(new RegExp(`inlet ${name}\\b.*  # \\S`));
  });

  it("has the same summary in the documentation as in --help", () => {
    const page = readFileSync(new URL("../../src/docs/command-line.md", import.meta.url), "utf8");
    const [, table = ""] = page.split(/<!-- \/?commands -->/);
    expect(table.trim().split("\n").slice(2)).toEqual(
      COMMANDS.map(({ name, summary }) => `| \`${name}\` | ${summary} |`),
    );
  });

  it("is listed by --help, and is suggested if the user misspells the name", async () => {
    const { stdout } = await runInlet(["--help"]);
    for (const { name } of COMMANDS) expect(stdout).toContain(`  ${name} `);
    expect(await runInlet(["chanels"])).toEqual({
      code: 2,
      stdout: "",
      stderr: "There is no command chanels. Did you mean channels?\n",
    });
  });

  it.each([
    ["--confg x", "unknown option '--confg'\n(Did you mean --config?)"],
    ["--config", "option '--config <file>' argument missing"],
    ["tail --sicne 2h", "unknown option '--sicne'\n(Did you mean --since?)"],
    ["tail -o xml", "argument 'xml' is invalid. Allowed choices are table, json."],
  ])("rejects a wrong flag with its name, its fix and a hint, also if the gateway is to start: %s", async (line, message) => {
    const { code, stderr } = await runInlet(line.split(" "));
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
    expect(stderr).toContain("Run the command with --help to list its options.");
  });

  it.each([
    "",
    "start ",
  ])("starts the gateway only with valid settings: inlet %s--config FILE", async (command) => {
    expect(await runInlet(`${command}--config /none`.split(" "))).toEqual({
      code: 2,
      stdout: "",
      stderr: "Inlet did not start: these settings are invalid.\n  --config: cannot read /none (ENOENT)\n",
    });
  });

  it("prints a table to a terminal, and JSON lines to a pipe or file", async () => {
    const [app] = rows((await run(`apps get ${world.app.id}`)).stdout);
    expect(app).toMatchObject({ id: world.app.id });
    const listed = await run("channels");
    expect(rows(listed.stdout).map(({ uid }) => uid)).toEqual(["inbox", "strict", "hooks", "sms", "orders"]);
    const table = await run("channels", { columns: 300, env: { NO_COLOR: "1" } });
    expect(table.stdout).toMatch(/^UID +KIND +STATE .*\ninbox +webhook +active .*\/hooks\/ch_/);
    expect((await run("channels", { columns: 300 })).stdout).toContain("\x1b[");
    expect((await run("channels -o json", { columns: 80 })).stdout).toBe(listed.stdout);
  });

  it.each([
    ["status -o json", { status: "ready" }],
    ["channels get inbox", { uid: "inbox", state: "active" }],
    ["channels pause inbox", { state: "paused" }],
    ["channels resume inbox", { state: "active" }],
    ["channels rotate strict --grace 60", { uid: "strict" }],
    [
      "channels poll github issues owner=nodejs repo=node --uid node-issues --every 300",
      {
        uid: "node-issues",
        config: { params: { owner: "nodejs", repo: "node" }, schedule: { intervalSeconds: 300 } },
        state: "needsConnection",
      },
    ],
    ["channels delete node-issues --yes", {}],
    ["sources", { uid: "orders" }],
    ["sources get orders", { silent: false }],
    ["sources cursor orders", { version: 0 }],
    ["subscriptions", { eventUid: "inbox:*" }],
    ["subscriptions create * --start-at earliest", { eventUid: "*", startAt: "earliest" }],
    ["presets shopify", { preset: "shopify" }],
    ["presets get github", { preset: "github", typePath: "$headers['x-github-event']" }],
    ["presets show github", { preset: "github" }],
    ["keys", { permissions: ["*"] }],
    ["keys create ci --permission apps.read", { name: "ci", permissions: ["apps.read"] }],
  ])("succeeds against a running gateway: inlet %s", async (line, expected) => {
    const { code, stdout, stderr } = await run(line);
    expect([code, stderr]).toEqual([0, ""]);
    expect(rows(stdout)[0]).toMatchObject(expected);
  });

  it("add and show a channel that finds missed events, and publish its listed items", async () => {
    const { app, gateway } = world;
    const webhook = { uid: "stripe", kind: "webhook", config: { preset: "stripe" } };
    await gateway.api("POST", `/apps/${app.id}/channels`, webhook);
    const added = await run("channels poll stripe events --uid missed --reconciles stripe");
    expect(rows(added.stdout)[0]).toMatchObject({ events: [], config: { reconciles: "stripe" } });
    const shown = await run("sources get missed");
    expect(rows(shown.stdout)[0]).toMatchObject({
      reconcile: { channelUid: "stripe", last: null, missed: null },
    });
    expect(await run("recover missed")).toMatchObject({ code: 0, stdout: "" });
    for (const uid of ["missed", "stripe"]) await run(`channels delete ${uid} --yes`);
  });

  it("inlet problems lists open problems, and exits with code 1 if a problem has the severity error", async () => {
    const { code, stdout } = await run("problems");
    const severities = rows(stdout).map(({ severity }) => severity);
    expect(code).toBe(severities.includes("error") ? 1 : 0);
    expect((await run("problems get prob_none")).stderr).toContain("no such problem");
  });

  it("deletes nothing without --yes if no terminal is available for confirmation", async () => {
    const made = rows((await run("subscriptions create inbox:received")).stdout)[0];
    const refused = await run(`subscriptions delete ${made.id}`);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      "The subscription was not deleted. Use --yes to confirm.\n",
    ]);
    expect(rows((await run(`subscriptions delete ${made.id} --yes`)).stdout)).toEqual([{ id: made.id }]);
  });
});

describe("the event commands", () => {
  it("print numbers in events exactly as the sender wrote them", async () => {
    await post("inbox", '{"big":12345678901234567890,"n":1.0}');
    const [event] = rows((await run("events --channel inbox --limit 1")).stdout);
    const got = await runInlet(["events", "get", event.topic, event.entryId], { env: world.env });
    expect(got.stdout).toContain('{"big":12345678901234567890,"n":1.0}');
    const seen = new AbortController();
    const tailed = await run("tail inbox --since 10m", {
      signal: seen.signal,
      onStdout: (all) => void (all.includes(event.id) && seen.abort()),
    });
    expect(tailed.stdout).toContain('"big":12345678901234567890');
    expect(rows(tailed.stdout)[0]).toMatchObject({ id: event.id, type: "received" });
  });

  it("inlet tail ends after --count events, or fails after --timeout if fewer arrive", async () => {
    for (const n of [1, 2]) await post("inbox", JSON.stringify({ n }));
    const counted = await run("tail inbox --since 10m --count 2");
    expect([counted.code, rows(counted.stdout).length]).toEqual([0, 2]);
    expect(await run("tail strict --count 1 --timeout 1s")).toEqual({
      code: 1,
      stdout: "",
      stderr: "Only 0 of 1 event arrived within 1 s.\n",
    });
    expect((await run("tail --timeout 2d")).stderr).toContain("must be between 1s and 24h");
  });

  it("escape control characters in the data of events", async () => {
    const hostile = "\u001b]0;owned\u0007\u001b[2J\u009b31m\u202etxt.exe\u2066\u{e0041}\u0000\r\n\u2028";
    await post("inbox", JSON.stringify({ hostile: hostile + String.fromCharCode(0xd800) }));
    const seen = new AbortController();
    const { stdout, stderr } = await run("tail --since 10m", {
      signal: seen.signal,
      columns: 2_000,
      env: { NO_COLOR: "1" },
      onStdout: (all) => void (all.includes("hostile") && seen.abort()),
    });
    expect(stdout).toContain("hostile");
    expect((stdout + stderr).replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
    const piped = await run("events --channel inbox --limit 1000");
    expect(piped.stdout.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
    expect(rows(piped.stdout)[0]?.data.hostile.startsWith("\u001b]0;owned")).toBe(true);
  });

  it("inlet send delivers a signed sample of the channel's provider, with a new event id each time", async () => {
    const push = await run("send hooks --secret s3cret");
    expect([push.code, rows(push.stdout)[0]]).toMatchObject([0, { status: 200, body: { published: 1 } }]);
    const issues = await run("send hooks --event issues", { env: { INLET_SECRET: "s3cret" } });
    expect(rows(issues.stdout)[0].body.events[0]).toMatchObject({ type: "issues", status: "published" });
    const wrong = await run("send hooks --secret another");
    expect([wrong.code, rows(wrong.stdout)[0].status]).toEqual([1, 401]);
    expect((await run("send hooks")).stderr).toContain("--secret");
    const own = await run('send hooks --show --secret s3cret --data {"a":1}');
    expect(rows(own.stdout)[0]).toMatchObject({
      body: '{"a":1}',
      headers: { "x-hub-signature-256": expect.stringMatching(/^sha256=[0-9a-f]{64}$/) },
    });
    const privately = await run("send sms --secret s3cret");
    expect([privately.code, privately.stderr]).toEqual([1, expect.stringContaining("private key")]);
    expect(privately.stderr).toContain("inlet send sms --test --preset telnyx");
    const tested = await run("send hooks --test --event issues");
    expect([tested.code, rows(tested.stdout)[0]]).toMatchObject([0, { events: [{ type: "issues" }] }]);
    expect(rows((await run('send inbox --data {"a":1}')).stdout)[0].status).toBe(200);
  });

  it("inlet send and inlet explain use the method that --method names, with a query instead of a body for GET", async () => {
    const { app, gateway } = world;
    const calls = {
      uid: "calls",
      kind: "webhook",
      config: { preset: "vonage", secrets: [{ value: "s3cret" }] },
    };
    await gateway.api("POST", `/apps/${app.id}/channels`, calls);
    const sent = await run("send calls --method get --data status=done&id=7 --secret s3cret");
    // The preset responds without a body, and only to a token with the hash of the query.
    expect([sent.code, rows(sent.stdout)[0]]).toMatchObject([0, { status: 200, body: "" }]);
    const explained = await run("explain calls --method GET --query status=done&id=7");
    expect(rows(explained.stdout)[0].items[0].events).toMatchObject([{ data: "status=done&id=7" }]);
    const tested = await run("send calls --method GET --data a=1 --test");
    expect(rows(tested.stdout)[0]).toMatchObject({ received: 1, failures: [] });
    expect((await run("send calls --method PUT --data {} --secret s3cret")).code).toBe(1);
    expect((await run("send calls --method GET --secret s3cret")).stderr).toContain("needs --data");
    expect((await run("send calls --method TRACE --data {}")).stderr).toContain(
      "POST, PUT, PATCH, GET, DELETE",
    );
    await gateway.api("DELETE", `/apps/${app.id}/channels/calls`);
  });

  it("inlet explain shows how a delivery or a provider's sample would be processed", async () => {
    const explained = await run('explain inbox --data {"a":1}');
    expect([explained.code, rows(explained.stdout)[0].items[0].events[0]]).toMatchObject([
      0,
      { type: "received" },
    ]);
    const sample = await run("explain strict --preset stripe");
    expect([sample.code, rows(sample.stdout)[0].items[0].failures[0]]).toMatchObject([
      1,
      { reason: "no_match" },
    ]);
  });

  it("inlet catalog and inlet types describe the event types of an app or a channel", async () => {
    const listed = rows((await run(`catalog ${world.app.id}`)).stdout);
    expect(listed.map(({ channelUid, type }) => `${channelUid}:${type}`)).toEqual(
      expect.arrayContaining(["hooks:issues", "hooks:push", "inbox:received"]),
    );
    expect(rows((await run("catalog --channel hooks")).stdout)).toMatchObject([
      { type: "issues", agents: false },
      { type: "push", example: { ref: "refs/heads/main" } },
    ]);
    const types = await run(`types ${world.app.id} --channel hooks`);
    expect([types.code, types.stdout]).toEqual([
      0,
      expect.stringContaining("  issues: unknown;\n  push: unknown;\n"),
    ]);
    expect((await run("catalog nothing")).stderr).toContain("There is no app nothing");
  });

  it("inlet infer lists the event types of a channel, and prints the schema of one", async () => {
    await run('send inbox --data {"a":1}');
    expect(rows((await run("infer inbox")).stdout)).toMatchObject([{ type: "received", failing: null }]);
    const printed = await run("infer inbox --type received --sample 1 -o table");
    expect([printed.code, printed.stderr]).toEqual([0, expect.stringContaining("From 1 event and ")]);
    expect(JSON.parse(printed.stdout)).toMatchObject({ type: "object" });
    expect((await run("infer inbox --type other")).stderr).toContain("must be the type of a definition");
  });

  it("inlet deliveries lists the recorded deliveries of a channel with their traces, and shows one", async () => {
    await run('send inbox --data {"a":1}');
    const list = async () => rows((await run("deliveries --channel inbox --status published")).stdout);
    await until(async () => (await list()).length > 0);
    const [delivery] = await list();
    expect(delivery).toMatchObject({ channelUid: "inbox", httpStatus: 200, traceId: null, traceUrl: null });
    const shown = JSON.parse((await run(`deliveries get ${delivery?.id}`)).stdout);
    expect(shown).toMatchObject({ id: delivery?.id, headers: expect.any(Object) });
  });

  it("inlet channels schemas lists the schema versions of a channel, and prints one", async () => {
    const events = [{ type: "push", schema: { type: "object" } }, { type: "issues" }];
    await world.gateway.api("PUT", `/apps/${world.app.id}/channels/hooks`, { events });
    expect(rows((await run("channels schemas hooks")).stdout)).toMatchObject([
      { type: "push", version: 1, isCurrent: true },
    ]);
    const printed = await run("channels schemas hooks push 1");
    expect(JSON.parse(printed.stdout)).toEqual({ type: "object" });
    expect((await run("channels schemas hooks push 2")).stderr).toContain("schema version");
    const before = [{ type: "push" }, { type: "issues" }];
    await world.gateway.api("PUT", `/apps/${world.app.id}/channels/hooks`, { events: before });
  });

  it("inlet agents opens event types to agents, and closes them", async () => {
    const opened = await run("agents open hooks issues");
    expect(rows(opened.stdout)).toMatchObject([{ type: "push" }, { type: "issues", agents: true }]);
    expect(rows((await run("catalog --agents")).stdout)).toMatchObject([
      { channelUid: "hooks", type: "issues" },
    ]);
    const unknown = await run("agents open hooks push stars");
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("Its types: push, issues.")]);
    await run("agents close hooks issues");
    expect((await run("catalog --agents")).stdout).toBe("");
  });

  it("list, show, redrive and delete quarantined items", async () => {
    await post("strict", '{"type":"b"}');
    const [item] = rows((await run("quarantine --reason no_match --channel strict")).stdout);
    expect(item).toMatchObject({ channelUid: "strict", reason: "no_match" });
    expect(rows((await run(`quarantine get ${item.id}`)).stdout)[0].body).toBe('{"type":"b"}');
    const redriven = await run(`redrive ${item.id}`);
    expect([redriven.code, rows(redriven.stdout)[0]]).toMatchObject([1, { id: item.id, status: "kept" }]);
    expect((await run("redrive")).code).toBe(2);
    expect(rows((await run(`quarantine delete ${item.id}`)).stdout)).toEqual([{ id: item.id }]);
  });

  it("test a source with dry-run, and count the events that replay would send", async () => {
    const dry = await run("dry-run orders");
    const recovered = await run("recover orders");
    expect([recovered.code, recovered.stderr]).toEqual([1, expect.stringContaining("has no `reconciles`")]);
    expect([dry.code, rows(dry.stdout)[0]]).toMatchObject([1, { end: { kind: "failed" }, response: null }]);
    const counted = await run(`replay ${world.subscription.id} --since 1h --dry-run`);
    expect(rows(counted.stdout)[0]).toMatchObject({ replayed: 0, matched: expect.any(Number) });
  });
});

describe("inlet doctor", () => {
  const state = (stdout: string, check: string) => rows(stdout).find((row) => row.check === check);
  const local = { INLET_API_KEY: API_KEY, INLET_APP: "" };

  it("reports each passed check of a healthy installation", async () => {
    const { code, stdout } = await run("doctor", {
      env: { ...local, INLET_DATA_DIR: join(dir, "none yet") },
    });
    // The channel without a secret becomes a problem after 20 seconds.
    const wrong = rows(stdout).filter((row) => row.state === "wrong");
    expect(wrong.filter(({ check }) => !/^problem: .* sms$/.test(check))).toEqual([]);
    expect(code).toBe(wrong.length);
    for (const check of [
      "Node.js",
      "settings",
      "PostgreSQL",
      "Redis",
      "data directory",
      "gateway",
      "version",
    ])
      expect(state(stdout, check)).toMatchObject({ check, state: "ok" });
  });

  it("suggests an action for an invalid setting, a readable key file and an unreachable gateway", async () => {
    const dataDir = mkdtempSync(join(dir, "data-"));
    writeFileSync(join(dataDir, "master.key"), Buffer.alloc(32).toString("base64"), { mode: 0o644 });
    const env = { ...local, INLET_DATA_DIR: dataDir, INLET_URL: NOBODY };
    const { code, stdout } = await run("doctor", { env });
    expect(code).toBe(1);
    expect(state(stdout, "master key")).toMatchObject({
      state: "wrong",
      suggestedAction: expect.stringContaining("chmod 600"),
    });
    expect(state(stdout, "gateway")).toMatchObject({
      state: "wrong",
      suggestedAction: expect.stringContaining("inlet start"),
    });
    const settings = await run("doctor", { env: { ...env, INLET_PORT: "many" } });
    expect(state(settings.stdout, "settings").message).toContain("INLET_PORT");
  });
});

describe("a failing command", () => {
  it("exits with code 4 if the gateway is unreachable, 5 if the API key lacks access, and 1 for an unknown object", async () => {
    const away = await run("apps", { env: { INLET_URL: NOBODY } });
    expect([away.code, away.stderr]).toEqual([4, expect.stringContaining("cannot be reached")]);
    const wrong = await run("apps", { env: { INLET_API_KEY: "ik_wrong" } });
    expect([wrong.code, wrong.stderr]).toEqual([5, expect.stringContaining("inlet login")]);
    const { key } = rows((await run("keys create reader --permission apps.read")).stdout)[0];
    const forbidden = await run("keys", { env: { INLET_API_KEY: key } });
    expect([forbidden.code, forbidden.stderr]).toEqual([5, expect.stringContaining("iam.read")]);
    const absent = await run("channels get nothing");
    expect([absent.code, absent.stderr]).toEqual([1, "There is no such channel.\n"]);
    const noApp = await run("channels --app nothing");
    expect([noApp.code, noApp.stderr]).toEqual([2, expect.stringContaining(world.app.id)]);
  });

  it("inlet login stores a valid API key in a private file, and never sends the key to another address", async () => {
    const env = { INLET_API_KEY: "", INLET_URL: "" };
    const wrong = await run(`login --url ${world.gateway.origin}`, { env, stdin: "ik_wrong\n" });
    expect(wrong.code).toBe(5);
    const kept = await run(`login --url ${world.gateway.origin}`, { env, stdin: `${API_KEY}\n` });
    expect([kept.code, rows(kept.stdout)[0]]).toMatchObject([0, { organization: { name: "default" } }]);
    expect(kept.stdout).not.toContain(API_KEY);
    const file = join(dir, "inlet/credentials.json");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await run("apps", { env })).code).toBe(0);
    const elsewhere = await run("apps", { env: { ...env, INLET_URL: NOBODY } });
    expect([elsewhere.code, elsewhere.stderr]).toEqual([5, expect.stringContaining("There is no API key")]);
    writeFileSync(file, "{");
    expect((await run("apps", { env })).stderr).toContain("Run `inlet login` again");
    await run("logout", { env });
    expect((await run("apps", { env: { INLET_API_KEY: "" } })).code).toBe(5);
  });
});

describe("untrusted text", () => {
  it("is printed with escaped control characters, direction marks and line breaks, and with unchanged letters and emoji", () => {
    expect(escapeText("a\u001b[2J\u202eb\r\n\u{e0041}")).toBe("a\\x1b[2J\\u{202e}b\\r\\n\\u{e0041}");
    expect(escapeText("Zoë 日本 👩‍👩‍👧 العربية")).toBe("Zoë 日本 👩‍👩‍👧 العربية");
    const json = escapeJson('{"a":"\u009b\u202e\u{e0041}",\n "b":1.0}');
    expect(json).toBe('{"a":"\\u009b\\u202e\\udb40\\udc41",  "b":1.0}');
    expect(JSON.parse(json)).toEqual({ a: "\u009b\u202e\u{e0041}", b: 1 });
  });

  it("is truncated by its width in terminal cells, so that wide characters count as two", () => {
    expect([widthOf("abc"), widthOf("日本"), widthOf("👩‍👩‍👧")]).toEqual([3, 4, 2]);
    expect([fitTo(3, "abcd"), fitTo(3, "日本語"), fitTo(4, "abcd")]).toEqual(["ab…", "日…", "abcd"]);
  });
});
