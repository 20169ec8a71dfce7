import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { startTestSpine } from "../support/spine.ts";

const README = readFileSync(new URL("../../README.md", import.meta.url), "utf8");

/** What the README hands to a call in single quotes, as a shell reads it. */
function quotedAfter(call: string): string {
  const at = README.indexOf(`${call} '`);
  const [, text] = /^'((?:[^']|'\\'')*)'/.exec(README.slice(at + call.length + 1)) ?? [];
  if (at < 0 || text === undefined) throw new Error(`the README has no ${call}`);
  return text.replaceAll("'\\''", "'");
}

it("the README's worked example does what it says", async () => {
  await using spine = await startTestSpine();
  const { call } = spine.api;
  const blueprint = await call("POST", "/blueprints", quotedAfter("post /blueprints"));
  const app = await call("POST", "/apps/install", { blueprintId: blueprint.body.id });
  const [channel] = app.body.channels;
  expect(channel.state).toBe("needsSetup");

  const secrets = quotedAfter("  -d");
  const set = await call("PUT", `/apps/${app.body.id}/channels/${channel.id}`, secrets);
  expect([set.status, set.body.state]).toEqual([200, "active"]);
  expect(JSON.stringify(set.body)).not.toContain("signs with");

  const subscription = await call(
    "POST",
    `/apps/${app.body.id}/events/subscribe`,
    quotedAfter("post /apps/app_…/events/subscribe"),
  );
  const { value } = JSON.parse(secrets).config.secrets[0];
  const deliver = (event: string, body: object) => {
    const text = JSON.stringify(body);
    return spine.send(channel.id, text, {
      "x-github-event": event,
      "x-github-delivery": `of ${event}`,
      "x-hub-signature-256": `sha256=${createHmac("sha256", value).update(text).digest("hex")}`,
    });
  };
  expect(await deliver("push", { ref: "refs/heads/main" })).toMatchObject({ published: 1 });
  expect(await deliver("issues", { action: "opened", issue: { title: "It works" } })).toMatchObject({
    published: 1,
  });
  const { group, topics } = subscription.body;
  const read = await Promise.all(
    topics.map((topic: string) =>
      spine.server.client.xreadgroup("GROUP", group, "reader-1", "COUNT", 10, "STREAMS", topic, ">"),
    ),
  );
  expect(JSON.stringify(read)).toContain("It works");
  expect(JSON.stringify(read)).toContain("refs/heads/main");
});
