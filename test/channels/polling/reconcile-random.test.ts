import fc from "fast-check";
import { expect, it } from "vitest";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import type { Answer, AnswerServer } from "./answer-server.ts";
import { openedAnswers } from "./poll-support.ts";
import { givenReconciled, type ProviderItem } from "./reconcile-support.ts";

/** A fixed seed generates the same stories in each run. */
const SEED = 20_261_127;
const STORIES = 6;
const SETTLE_SECONDS = 60;
const PAGE_ITEMS = 3;
const START_SECONDS_AGO = 3 * 3_600;

const spine = opened(() => startTestSpine());
const server = openedAnswers();

/** Each step happens some seconds after the previous one. */
const step = fc.record({
  seconds: fc.integer({ min: 0, max: 90 }),
  action: fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom("received", "missed", "late") },
    { weight: 2, arbitrary: fc.constant("poll") },
    { weight: 1, arbitrary: fc.constantFrom("die before the write", "die after the write") },
    { weight: 1, arbitrary: fc.constant("deliver late ones") },
  ),
});

const story = fc.record({
  order: fc.constantFrom("ascending", "descending"),
  match: fc.constantFrom("identity", "id"),
  steps: fc.array(step, { minLength: 20, maxLength: 40 }),
});

it("publishes each event of a random history once, and none before it has settled", async () => {
  await fc.assert(
    fc.asyncProperty(story, async ({ match, order, steps }) => {
      const rig = await givenReconciled(spine, server, {
        config: {
          request: { url: `${server.origin}/items`, query: { since: "{{cursor}}" } },
          pagination: { by: "linkHeader" },
          settleSeconds: SETTLE_SECONDS,
          order,
          match,
        },
      });
      rig.pass(-START_SECONDS_AGO);
      const items: ProviderItem[] = [];
      const late: ProviderItem[] = [];
      const received = new Set<string>();
      server.answers = [listPages(server, items, order)];
      const send = async (item: ProviderItem) => {
        received.add(item.id);
        // With `identity`, the webhook carries the bytes of the item.
        const outcome = await rig.send(match === "id" ? { ...item, attempt: 1 } : item);
        expect(outcome.quarantined).toBe(0);
      };

      async function expectSettled(): Promise<void> {
        const young = items.filter(({ at }) => Date.parse(at) > rig.now() - SETTLE_SECONDS * 1_000);
        const ids = await rig.ids();
        for (const { id } of young) expect(ids.includes(id) && !received.has(id)).toBe(false);
      }

      for (const { action, seconds } of steps) {
        rig.pass(seconds);
        switch (action) {
          case "received":
          case "missed":
          case "late": {
            const item = { id: `e${items.length}`, at: new Date(rig.now()).toISOString() };
            items.push(item);
            if (action === "received") await send(item);
            if (action === "late") late.push(item);
            break;
          }
          case "deliver late ones":
            for (const item of late.splice(0)) await send(item);
            break;
          case "poll":
            await rig.pollAll();
            await expectSettled();
            break;
          default:
            await dyingPoll(rig, action);
            await expectSettled();
        }
      }
      // A received webhook proves that the ids are right, so the last polls publish all missed events.
      const last = { id: "last", at: new Date(rig.now()).toISOString() };
      items.push(last);
      await send(last);
      rig.pass(SETTLE_SECONDS + 1);
      await rig.pollAll();
      for (const item of late) await send(item);
      await rig.pollAll();
      expect((await rig.ids()).toSorted()).toEqual(items.map(({ id }) => id).toSorted());
      expect(await rig.quarantine()).toEqual([]);
    }),
    { numRuns: STORIES, seed: SEED },
  );
});

/** Runs a poll whose worker ends at one of its writes. */
async function dyingPoll(
  rig: Awaited<ReturnType<typeof givenReconciled>>,
  when: "die before the write" | "die after the write",
): Promise<void> {
  const gather: typeof rig.deps.gather = (channel, deliveries) =>
    rig.deps.gather(channel, deliveries).map((gathered) => ({
      ...gathered,
      async write(options) {
        if (when === "die after the write") await gathered.write(options);
        throw new UnavailableError("killed");
      },
    }));
  await rig.poll({ gather }).catch((error: unknown) => {
    if (!(error instanceof UnavailableError)) throw error;
  });
}

/** Lists the items since a time in pages. */
function listPages(
  { origin }: AnswerServer,
  items: readonly ProviderItem[],
  order: "ascending" | "descending",
): Answer {
  return (request, response) => {
    const url = new URL(request.url ?? "", origin);
    const since = url.searchParams.get("since") ?? "";
    const from = Number(url.searchParams.get("from") ?? 0);
    const listed = items.filter(({ at }) => at >= since);
    if (order === "descending") listed.reverse();
    const next = from + PAGE_ITEMS;
    url.searchParams.set("from", String(next));
    response
      .writeHead(200, {
        "content-type": "application/json",
        ...(next < listed.length && { link: `<${url}>; rel="next"` }),
      })
      .end(JSON.stringify({ items: listed.slice(from, next) }));
  };
}
