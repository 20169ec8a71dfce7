import { describe, expect, it } from "vitest";
import { json, status } from "./answer-server.ts";
import { openedPositions } from "./positions-support.ts";
import type { Config } from "./support.ts";

const { queries, rigOf, server } = openedPositions();

const item = (id: string) => ({ id });
const tokenIs = (start: unknown) => json({ start });
const changes = (items: readonly object[], token: string) => json({ items, token });

/** A channel whose server returns no items without a token, and names the first token at another address. */
const startRig = (config: Partial<Config> = {}) =>
  rigOf(
    {
      itemsPath: "$.items",
      discriminator: {
        by: "token",
        path: "$.token",
        first: { url: `${server.origin}/start`, path: "$.start" },
      },
      order: "unordered",
      retry: { attempts: 0 },
      ...config,
    },
    { after: "{{cursor}}" },
  );
const paths = () => server.requests.map(({ url }) => url.replace(/^\/[^?]*\?/, "?"));

describe("a channel with a request for the first token", () => {
  it.each([
    "now",
    "earliest",
  ] as const)("publishes the changes since that request with startAt %s", async (startAt) => {
    const rig = startRig({ startAt });
    server.answers = [tokenIs("t1"), changes([item("a")], "t2")];
    expect(await rig.poll()).toMatchObject({ kind: "done" });
    server.answers = [changes([item("b")], "t3")];
    await rig.poll();
    expect(paths()).toEqual(["/start", "?after=t1", "?after=t2"]);
    expect(rig.log.map(({ id }) => id)).toEqual(["a", "b"]);
    expect(rig.shownCursor()).toEqual({ token: "t3" });
  });

  it("stores the first token before it requests items, so that a failure loses no changes", async () => {
    const rig = startRig();
    server.answers = [tokenIs("t1"), status(500)];
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "http_500" });
    expect(rig.shownCursor()).toEqual({ token: "t1" });
    server.answers = [changes([item("a")], "t2")];
    await rig.poll();
    expect(paths()).toEqual(["/start", "?after=t1", "?after=t1"]);
    expect(rig.log.map(({ id }) => id)).toEqual(["a"]);
  });

  it("requests another first token after the token has expired, and reports the gap", async () => {
    const rig = startRig();
    server.answers = [tokenIs("t1"), changes([], "t2")];
    await rig.poll();
    server.answers = [status(410), tokenIs("t8"), changes([item("b")], "t9")];
    expect(await rig.poll()).toMatchObject({ kind: "done" });
    expect(paths()).toEqual(["/start", "?after=t1", "?after=t2", "/start", "?after=t8"]);
    expect([rig.warnings, rig.log.map(({ id }) => id)]).toEqual([["position_expired"], ["b"]]);
  });

  it.each<[string, ReturnType<typeof json>, object]>([
    ["is an error", status(403), { kind: "failed", code: "http_403" }],
    ["has no token", json({ other: 1 }), { kind: "failed", code: "token_missing" }],
    ["is no JSON", json("{"), { kind: "failed", code: "token_missing" }],
    ["has an object as token", tokenIs({}), { kind: "failed", code: "token_missing" }],
  ])("fails and requests no items if the response %s", async (_, answer, end) => {
    const rig = startRig();
    server.answers = [answer];
    expect(await rig.poll()).toMatchObject(end);
    expect([paths(), rig.cursor]).toEqual([["/start"], undefined]);
  });

  it("shows the request for items in a dry run, and stores no token", async () => {
    const rig = startRig();
    server.answers = [tokenIs("t1"), changes([item("a")], "t2")];
    const dryRun = await rig.dryRun();
    expect(dryRun.request.url).toContain("after=t1");
    expect(rig.cursor).toBeUndefined();
  });

  it("sends no request for a token if the channel starts at one", async () => {
    const rig = startRig({ startAt: { value: "t5" } });
    server.answers = [changes([item("a")], "t6")];
    await rig.poll();
    expect(paths()).toEqual(["?after=t5"]);
  });

  it("does not request the first token from another origin without a connection", async () => {
    const first = { url: "http://127.0.0.1:9/start", path: "$.start" };
    const rig = startRig({ discriminator: { by: "token", path: "$.token", first } });
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "origin" });
    expect(queries()).toEqual([]);
  });
});
