import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { NOBODY, openedCommands, rows } from "./opened-commands.ts";

const { world, run, post } = openedCommands();

const atTerminal = async (line: string, { color = false } = {}) => {
  const { code, stdout, stderr } = await run(line, { columns: 1_000, env: color ? {} : { NO_COLOR: "1" } });
  return { code, text: stdout + stderr };
};

describe("a command at a terminal", () => {
  it.each<[string, RegExp]>([
    ["status", / is ready\.\n\n.*NOT ACTIVE .* LAG +DEAD LETTERS +QUARANTINE\napp_\S+ /],
    ["apps", /^ID +UID +TITLE +HEALTH +CHANNELS +LAST EVENT +EVENTS\/MIN +QUARANTINED .*\napp_\S+ /],
    ["get {app}", /\nblueprintId: +bp_/],
    ["get hooks", /\nuid: +hooks\n/],
    ["get no-such-id", /^There is no entity with the id no-such-id, or your key may not read it\.\n$/],
    ["apps get {app}", /\nblueprintId: +bp_/],
    [
      "sources",
      /^APP +CHANNEL +HEALTH +STATE +SILENT +LAST EVENT +NEXT +LAST WAKE +LAG MS +MISSED +LAST ERROR\nbp_\S+ +orders +\w+/,
    ],
    [
      "subscriptions",
      /^ID +EVENTS +STATE +LAG .*\nsub_\S+ +inbox:\* +\w+ .*http:\/\/127\.0\.0\.1:\d+\/events/,
    ],
    ["keys", /^ID +NAME +BEGINS +PERMISSIONS +EXPIRES +CREATED\n\S+ .*\*/],
    ["presets shopify", /^PRESET +TITLE +SCHEME +STREAMS +REGISTERS +DESCRIPTION\nshopify +Shopify +hmac /],
    ["presets get github", /\nverified by: +hmac\nsecret: +Secret: .*\n/],
    [
      "presets get github",
      /\ncan be polled: +Events of a repository: inlet channels poll github events owner=… repo=…\n/,
    ],
    ["presets no-such-word", /No matching preset\./],
    [
      'explain inbox --data {"a":1}',
      /^ITEM +OUTCOME +TYPE .*\n +new +received .*\nverification: skipped; 1 item\n/,
    ],
    ['explain strict --data {"type":"b"}', /no_match +closest: a /],
    ['explain strict --data {"type":"a","draft":1}', /\n +ignored +a +\/item +must NOT be valid\n/],
    [
      "catalog --channel hooks",
      /^CHANNEL +TYPE +SCHEMA +AGENTS +LAST DAY +LAST SEEN\nhooks +issues +no +no +\d+/,
    ],
    ["dry-run orders", /^GET http:.*\nno response\nend: failed \(refused\): [^\n]+\nnext cursor: null\n/],
  ])("prints a table for the command inlet %s", async (line, expected) => {
    const named = line.replace("{app}", world.app.id);
    const plain = await atTerminal(named);
    expect(plain.text).toMatch(expected);
    const colored = await atTerminal(named, { color: true });
    expect(stripVTControlCharacters(colored.text)).toMatch(expected);
    expect(colored.code).toBe(plain.code);
  });

  it("colors a state by its text", async () => {
    const { text } = await atTerminal("subscriptions", { color: true });
    expect(text).toContain("\u001B[32mactive\u001B[39m");
    expect((await atTerminal("channels", { color: true })).text).toContain("\u001B[33midle\u001B[39m");
  });

  it("prints events, quarantined items and redrive results as tables", async () => {
    await post("inbox", '{"a":1}');
    expect((await atTerminal("events --channel inbox --since 1h")).text).toMatch(
      /^TIME +APP +CHANNEL +TYPE +ID +ENTRY +DATA\n\S+ +bp_\S+ +inbox +received +evt_\S+ +\d+-\d+ /,
    );
    expect((await atTerminal("events --type nothing")).text).toContain("No events found.");
    const [{ id }] = rows((await run("events --channel inbox --since 1h --limit 1")).stdout);
    expect((await atTerminal(`get ${id}`)).text).toMatch(/(?:^|\n)(?:event|id:) +/);
    await post("strict", '{"type":"b"}');
    const kept = "quarantine --reason no_match --channel strict --since 1h --until 2099-01-01T00:00:00Z";
    expect((await atTerminal(kept, { color: true })).text).toMatch(/qr_\S+ .*strict .*no_match/);
    const redriven = await atTerminal("redrive --channel strict --reason no_match");
    expect([redriven.code, redriven.text]).toEqual([
      1,
      expect.stringMatching(/^ITEM +OUTCOME .*\nqr_\S+ +kept/),
    ]);
    const [item] = rows((await run("quarantine --channel strict")).stdout);
    const both = await atTerminal(`redrive ${item.id} --all`);
    expect([both.code, both.text]).toEqual([2, "Use either item ids, or filters, or --all.\n"]);
    expect((await atTerminal("redrive --all --as-new-id")).code).toBe(2);
    await run(`quarantine delete ${item.id}`);
    expect((await atTerminal("quarantine --channel strict")).text).toContain("Quarantine is empty.");
  });
});

describe("the resource commands", () => {
  it("install, upgrade and delete an app", async () => {
    const blueprint = await world.gateway.api<{ id: string }>("POST", "/blueprints", {
      title: "Second",
      channels: [{ uid: "hooks", kind: "webhook", events: [{ type: "push" }] }],
    });
    const settings = '{"hooks":{"secrets":[{"value":"s3cret"}]}}';
    const [app] = rows(
      (await run(`apps install ${blueprint.id} --uid second --title Second --channels ${settings}`)).stdout,
    );
    expect(app).toMatchObject({ uid: "second", title: "Second" });
    expect((await run(`apps install ${blueprint.id} --channels {`)).stderr).toBe("{ is not JSON.\n");
    expect(rows((await run(`apps upgrade ${app.id} --remove-missing`)).stdout)[0].id).toBe(app.id);
    expect((await run(`apps delete ${app.id}`)).stderr).toBe(
      "The app was not deleted. Use --yes to confirm.\n",
    );
    expect(rows((await run(`apps delete ${app.id} --purge --yes`)).stdout)).toEqual([{ id: app.id }]);
    expect((await run(`apps get ${app.id}`)).code).not.toBe(0);
  });

  it("create the intake of a blueprint with the route keys of its preset, and set the keys of an install", async () => {
    await world.gateway.api("POST", "/blueprints", {
      uid: "slack",
      title: "Slack",
      channels: [
        { uid: "hooks", kind: "webhook", config: { preset: "slack" }, events: [{ type: "message" }] },
      ],
    });
    const [app] = rows((await run("apps install slack --uid customer --title Customer")).stdout);
    const [made] = rows((await run("intake set slack --secret s3cret")).stdout);
    const routeBy = ["$.authorizations[0].team_id", "$.team_id"];
    expect(made).toMatchObject({ channel: "hooks", routeBy, state: "active", config: { preset: "slack" } });
    expect(rows((await run("intake get slack")).stdout)).toEqual([made]);
    const [changed] = rows((await run("intake set slack --route-by $.team_id")).stdout);
    expect(changed).toMatchObject({ routeBy: ["$.team_id"], state: "active" });
    expect((await run(`intake keys slack ${app.id}`)).stderr).toContain("or use --clear");
    await run("intake keys slack customer T061EG9R6 T2");
    const { text } = await atTerminal("intake keys slack");
    expect(text).toMatch(
      /^APP +ORGANIZATION +KEYS +EVENTS LAST DAY +QUARANTINED\napp_\S+ +org_\S+ +T061EG9R6, T2 +0 +0\n/,
    );
    expect(rows((await run(`intake keys slack ${app.id} --clear`)).stdout)[0].routeKeys).toEqual([]);
    expect(rows((await run("intake pause slack")).stdout)[0].state).toBe("paused");
    expect(rows((await run("intake resume slack")).stdout)[0].state).toBe("active");
    const [rotated] = rows((await run("intake rotate slack --grace 60")).stdout);
    expect(rotated.url).not.toBe(made.url);
    const [shown] = rows((await run("send slack --intake --secret s3cret --show")).stdout);
    expect(shown).toMatchObject({ url: rotated.url, headers: { "x-slack-signature": expect.any(String) } });
    const keyed = await run("send slack --intake --secret s3cret --route-key T5 --show");
    expect(rows(keyed.stdout)[0].body).toContain('"team_id":"T5"');
    expect((await run("send hooks --route-key T5")).stderr).toContain("--route-key requires --intake");
    const tested = await atTerminal("send slack --intake --test --route-key T5");
    expect(tested.text).toMatch(/ROUTE KEY +OUTCOME .*\nT5 +no_install /);
    await run('send slack --intake --secret s3cret --data {"team_id":"T9","type":"event_callback"}');
    const [held] = rows((await run("intake items slack")).stdout);
    expect(held).toMatchObject({ reason: "no_install", count: 1 });
    expect(rows((await run(`intake items slack ${held.id}`)).stdout)[0].body).toContain("T9");
    expect((await run("intake redrive slack")).stderr).toContain("Use either item ids or --reason.");
    const redriven = await run(`intake redrive slack ${held.id}`);
    expect([redriven.code, rows(redriven.stdout)]).toMatchObject([1, [{ status: "kept", held: 1 }]]);
    expect(rows((await run("intake redrive slack --reason no_install --since 1h")).stdout)).toHaveLength(1);
    const explained = await atTerminal("explain slack --intake --preset slack");
    expect(explained.text).toMatch(/0 +no_install +T061EG9R6 .*\$\.team_id: T061EG9R6/);
    const tried = await run("explain slack --intake --preset slack --route-by $.none");
    expect([tried.code, rows(tried.stdout)[0].items[0].result]).toEqual([1, "no_route"]);
    expect((await run("explain hooks --preset slack --route-by $.a")).stderr).toContain("requires --intake");
    expect((await run("intake delete slack --yes")).code).toBe(0);
    expect((await run("intake get slack")).stderr).toContain("intake");
    expect((await run("intake get unknown")).stderr).toContain("There is no blueprint unknown.");
  });

  it("set and reset the cursor of a source", async () => {
    const at = '{"timestamp":"2026-01-01T00:00:00.000Z"}';
    const set = await run(`sources cursor orders --set ${at}`);
    expect([set.stderr, rows(set.stdout)[0]]).toMatchObject(["", { value: JSON.parse(at) }]);
    expect((await run("sources cursor orders --reset")).code).toBe(0);
    expect((await run("sources cursor orders --set {")).stderr).toBe("{ is not JSON.\n");
    expect((await run(`sources cursor orders --set ${at} --reset`)).code).toBe(2);
  });

  it("create, pause, resume, rewind and show a subscription with a handler", async () => {
    const create = `subscriptions create inbox:* --handler ${NOBODY} --ordered`;
    const [made] = rows((await run(create)).stdout);
    expect(made.handler).toMatchObject({ ordered: true, secret: expect.any(String) });
    for (const [verb, state] of [
      ["pause", "paused"],
      ["resume", "active"],
      ["rewind", "active"],
    ]) {
      const line = `subscriptions ${verb} ${made.id}${verb === "rewind" ? " --to earliest" : ""}`;
      expect(rows((await run(line)).stdout)[0].state).toBe(state);
    }
    expect(rows((await run(`subscriptions get ${made.id}`)).stdout)[0].id).toBe(made.id);
    expect((await run("subscriptions create inbox:* --ordered")).stderr).toContain("--handler");
    const keyed = `subscriptions create inbox:* --handler ${NOBODY} --ordered-by-key`;
    expect(rows((await run(keyed)).stdout)[0].handler.ordered).toBe("key");
    const batched = `subscriptions create inbox:* --handler ${NOBODY} --batch 50`;
    expect(rows((await run(batched)).stdout)[0].handler.batch).toMatchObject({ maxEvents: 50 });
    expect((await run("subscriptions create inbox:* --batch 50")).stderr).toContain("--handler");
    expect((await run(`${keyed} --ordered`)).stderr).toContain("exclude each other");
    expect((await run("subscriptions create inbox:* --ordered-by-key")).stderr).toContain("--handler");
    expect((await run("subscriptions create inbox:* --when {}")).stderr).toContain("--handler");
    expect((await run(`subscriptions create inbox:* --handler ${NOBODY} --when {`)).stderr).toContain("JSON");
    const filtered = await run(
      `subscriptions create inbox:* --handler ${NOBODY} --when {"required":["data"]}`,
    );
    expect(filtered.stdout).toContain("required");
    await run(`subscriptions delete ${made.id} --yes`);
  });

  it("revoke an API key, so that the gateway rejects the key", async () => {
    const [{ id, key }] = rows((await run("keys create gone --expires 2099-01-01T00:00:00Z")).stdout);
    expect(rows((await run(`keys revoke ${id}`)).stdout)).toEqual([{ id }]);
    expect((await run("apps", { env: { INLET_API_KEY: key } })).code).toBe(5);
  });
});
