import fc from "fast-check";
import { test } from "vitest";
import { largeSchemes, live, schemes, story } from "../channels/polling/random-stories.ts";
import { opened } from "../support/opened.ts";
import { PollUpstream } from "../support/poll-upstream.ts";

/** Stories of each scheme; others each time, unless a seed is given: that of a failure is printed with it. */
const STORIES = Number(process.env.POLL_RUNS ?? 50);
const SEED = process.env.POLL_SEED;

const upstream = opened(() => PollUpstream.start());

test.each(schemes)("$name: nothing lost, nothing doubled", async (scheme) => {
  await fc.assert(
    fc.asyncProperty(story, (told) => live(upstream, scheme, told)),
    { numRuns: STORIES, ...(SEED !== undefined && { seed: Number(SEED) }) },
  );
});

/** A page of this size costs twenty times as much. */
const LARGE_STORIES = Math.ceil(STORIES / 20);

test.each(largeSchemes)("$name: nothing lost, nothing doubled", async (scheme) => {
  await fc.assert(
    fc.asyncProperty(story, (told) => live(upstream, scheme, told)),
    { numRuns: LARGE_STORIES, ...(SEED !== undefined && { seed: Number(SEED) }) },
  );
});
