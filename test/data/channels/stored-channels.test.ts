import { describe, expect, it } from "vitest";
import { recordFirstRun } from "../../../src/data/channels/sources.ts";
import { givenChannel, numberOf } from "../../support/channels.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(() => startTestSpine());
const URL = "https://upstream.example/stream";

async function install(config: object) {
  const { id, path } = await givenChannel(spine, {
    kind: "sse",
    config: { url: URL, ...config },
    events: [{ type: "first" }],
  });
  return { path, number: await numberOf(spine, id) };
}

describe("looking up a source that polls or streams", () => {
  it("returns a running source with its current and former topics", async () => {
    const { path, number } = await install({ run: "always" });
    const before = await spine.path.findSource(number);
    await spine.api.call("PUT", path, { events: [{ type: "second" }] });
    const after = await spine.path.findSource(number);
    expect(before?.topics).toHaveLength(1);
    expect(after?.topics).toHaveLength(2);
    expect(after?.topics).toEqual(expect.arrayContaining([...(before?.topics ?? [])]));
  });

  it("returns whether the source has ever run", async () => {
    const { number } = await install({ run: "always" });
    expect(await spine.path.findSource(number)).toMatchObject({ hasRunBefore: false });
    await recordFirstRun(spine.api.database.db, number);
    expect(await spine.path.findSource(number)).toMatchObject({ hasRunBefore: true });
  });

  it("returns nothing for a source that is unused, paused or deleted, even in a batch with a running source", async () => {
    const [wanted, idle, paused] = [
      await install({ run: "always" }),
      await install({}),
      await install({ run: "always" }),
    ];
    await spine.api.call("POST", `${paused.path}/pause`);
    const numbers = [wanted.number, idle.number, paused.number, 999_999];
    const found = await Promise.all(numbers.map((number) => spine.path.findSource(number)));
    expect(found.map((source) => source?.channel.identity.number)).toEqual([
      wanted.number,
      undefined,
      undefined,
      undefined,
    ]);
  });
});
