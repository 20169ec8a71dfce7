import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runInlet } from "../support/command.ts";
import { openedCommands, rows } from "./opened-commands.ts";

const { dir, world, run } = openedCommands();

const OTHER_APPS = { INLET_APP: "" };

function text(name: string, content: string): string {
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
}

const file = (name: string, value: unknown): string => text(name, JSON.stringify(value));

it("creates a blueprint, an app and a channel from files, and finds the app of a channel without --app", async () => {
  const blueprint = {
    uid: "shop",
    title: "Shop",
    channels: [{ uid: "sales", kind: "webhook", events: [{ type: "sold" }] }],
  };
  const made = await run(`blueprints create -f ${file("shop.json", blueprint)}`);
  expect(rows(made.stdout)).toMatchObject([{ uid: "shop" }]);
  expect(rows((await run("blueprints get shop")).stdout)).toMatchObject([{ title: "Shop" }]);
  const changed = await run(`blueprints update shop -f ${file("title.json", { title: "Shops" })}`);
  expect(rows(changed.stdout)).toMatchObject([{ uid: "shop", title: "Shops", channels: [{ uid: "sales" }] }]);

  const app = await run(`apps create -f ${file("app.json", { blueprint: "shop", uid: "shop-eu" })}`);
  const [{ id }] = rows(app.stdout);
  const refunds = { uid: "refunds", kind: "webhook", events: [{ type: "refunded" }] };
  const channel = await run(`channels create -f ${file("refunds.json", refunds)} --app shop-eu`);
  expect(rows(channel.stdout)).toMatchObject([{ uid: "refunds", appId: id, state: "active" }]);

  const renamed = await run(
    `channels update refunds -f ${file("named.json", { title: "Refunds" })} --app shop-eu`,
  );
  expect(rows(renamed.stdout)).toMatchObject([{ uid: "refunds", title: "Refunds", events: refunds.events }]);

  const found = await run("channels get refunds", { env: OTHER_APPS });
  expect(rows(found.stdout)).toMatchObject([{ uid: "refunds", appId: id }]);
  const subscription = await run(`subscriptions get ${world.subscription.id}`, { env: OTHER_APPS });
  expect(rows(subscription.stdout)).toMatchObject([{ id: world.subscription.id }]);

  const second = await run(`channels create -f ${file("refunds.json", refunds)} --app ${world.app.id}`);
  expect(second.code).toBe(0);
  const ambiguous = await run("channels get refunds", { env: OTHER_APPS });
  expect(ambiguous.code).toBe(2);
  expect(ambiguous.stderr).toMatch(
    /^Several apps have refunds. Choose one with --app or INLET_APP:\n {2}app_/,
  );
  const unknown = await run("channels get nowhere", { env: OTHER_APPS });
  expect(unknown.stderr).toMatch(/^Choose an app with --app or INLET_APP:\n/);
});

it("reports fields that the API rejects, and files without an object", async () => {
  const wrong = await run(`channels create -f ${file("wrong.json", { uid: "x", kind: "fax" })}`);
  expect(wrong).toMatchObject({ code: 1 });
  expect(wrong.stderr).toContain("kind: must be one of");
  const list = await run(`blueprints create -f ${file("list.json", [])}`);
  expect(list).toMatchObject({ code: 2, stderr: expect.stringContaining("must contain a JSON object.") });
});

it("replaces the secret of a channel, which then accepts deliveries that are signed with it", async () => {
  const changed = await run(`channels update hooks --secret @${text("secret.txt", "another secret\n")}`);
  expect(rows(changed.stdout)).toMatchObject([
    { uid: "hooks", state: "active", config: { preset: "github" } },
  ]);
  expect(changed.stdout).not.toContain("another secret");
  const sent = await runInlet(["send", "hooks", "--secret", "another secret"], { env: world.env });
  expect(rows(sent.stdout)).toMatchObject([{ status: 200, body: { published: 1 } }]);
  expect(await run("channels update hooks")).toMatchObject({
    code: 2,
    stderr: "Use either --file or --secret.\n",
  });
});

it("replaces the secret of a channel with a preset that has named secrets, unless the channel has one", async () => {
  const channel = {
    uid: "chats",
    kind: "webhook",
    config: { preset: "whatsapp", secrets: [{ value: "first" }] },
  };
  await run(`channels create -f ${file("chats.json", channel)} --app ${world.app.id}`);
  const update = `channels update chats --app ${world.app.id}`;
  expect(await run(`${update} --secret second`)).toMatchObject({ code: 0 });
  const named = { config: { secrets: [{ value: "second" }, { name: "verifyToken", value: "token" }] } };
  expect(await run(`${update} -f ${file("named-secrets.json", named)}`)).toMatchObject({ code: 0 });
  const rejected = await run(`${update} --secret third`);
  expect(rejected).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("also the named ones (verifyToken)"),
  });
});

it("rejects a second argument that reads standard input", async () => {
  const rejected = await runInlet(["explain", "inbox", "-f", "-", "--data", "@-"], {
    env: world.env,
    stdin: "{}",
  });
  expect(rejected).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Standard input can be read only once"),
  });
});

it("tries definitions of a file on a delivery and on quarantined items, before they are saved", async () => {
  const events = file("tried.json", { events: [{ type: "b", typePath: "$.type" }] });
  const data = ["--data", '{"type":"b"}'];
  const tried = await run(`explain strict -f ${events} ${data.join(" ")}`);
  expect(rows(tried.stdout)[0].items[0]).toMatchObject({ events: [{ type: "b" }], failures: [] });
  await run(`send strict ${data.join(" ")}`);
  const preview = rows((await run(`quarantine preview strict -f ${events}`)).stdout)[0];
  expect(preview).toMatchObject({ matched: 1, released: 1 });
});

it("prints one field of each result with --field, leaves out rows without it, and fails if a single result does not have it", async () => {
  const { id } = world.app;
  expect(await run(`apps get ${id} --field id`)).toMatchObject({ code: 0, stdout: `${id}\n` });
  expect((await run(`api GET /apps/${id}/channels --field 0.events.0`)).stdout).toMatch(/^{"type":.*}\n$/);
  expect((await run("channels list --field uid")).stdout).toMatch(/^inbox\n/m);
  expect((await run(`api GET /apps/${id}/channels --field uid`)).stdout).toMatch(/^inbox\n/m);
  expect(await run("channels list --field owner.id")).toMatchObject({ code: 0, stdout: "" });
  const missing = await run(`apps get ${id} --field owner.id`);
  expect(missing).toMatchObject({ code: 2, stdout: "" });
  expect(missing.stderr).toMatch(new RegExp(`^{"id":"${id}",.*}\nThe result has no field owner.id.\n$`));
});

it("inlet api calls any operation, with a body from standard input", async () => {
  expect(rows((await run("api GET /apps?limit=1")).stdout)[0]).toHaveLength(1);
  const made = await run("api post v1/blueprints -d @-", {
    stdin:
      '{"uid": "piped", "title": "Piped", "channels": [{"uid": "a", "kind": "webhook", "events": [{"type": "t"}]}]}',
  });
  expect(rows(made.stdout)).toMatchObject([{ uid: "piped", channels: [{ uid: "a" }] }]);
  expect(await run("api GET /apps/app_unknown")).toMatchObject({ code: 1, stdout: "" });
  expect(await run("api BREW /apps")).toMatchObject({
    code: 2,
    stderr: "BREW is not a method of the API. Use one of POST, PUT, PATCH, GET, DELETE.\n",
  });
  expect((await run("api POST /apps/install -d {")).stderr).toContain("--data is not JSON");
});

it("creates a connection for a provider, whose secret comes from standard input, and prints the sign-in address", async () => {
  const made = await run("connections create github --client-id Iv1.1a2b3c", { stdin: "s-1\n" });
  const [{ id, ...connection }] = rows(made.stdout);
  expect(connection).toMatchObject({ name: "github", allowedOrigins: ["https://api.github.com"] });
  expect(made.stdout).not.toContain("s-1");
  const [{ url }] = rows((await run(`connections sign-in ${id}`)).stdout);
  expect(url).toMatch(/^https:\/\/github\.com\/login\/oauth\/authorize\?/);
  const providers = rows((await run("connections providers")).stdout);
  expect(providers).toContainEqual(expect.objectContaining({ provider: "slack", title: "Slack" }));
  expect((await run(`connections delete ${id} --yes`)).code).toBe(0);
  expect((await run("connections")).stdout).not.toContain(id);
});

it("inlet audit prints what happened in sentences", async () => {
  await run("connections create gitlab --client-id abc --name Issues", { stdin: "s-1\n" });
  const { stdout } = await run("audit --entity connection -o table");
  expect(stdout).toContain("created the connection 'Issues'.");
});
