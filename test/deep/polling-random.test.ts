import fc from "fast-check";
import { test } from "vitest";
import { largeSchemes, live, schemes, story } from "../channels/polling/random-stories.ts";
import { opened } from "../support/opened.ts";
import { PollUpstream } from "../support/poll-upstream.ts";

/** Random stories per scheme. Each run uses other ones unless a seed is given. A failure prints its seed. */
const STORIES = Number(process.env.POLL_RUNS ?? 50);
const SEED = process.env.POLL_SEED;

const upstream = opened(() => PollUpstream.start());

test.each(
  schemes,
)("polling with $name publishes each item exactly once in random sequences of inserts, faults and restarts", async (scheme) => {
  await fc.assert(
    fc.asyncProperty(story, (steps) => live(upstream, scheme, steps)),
    { numRuns: STORIES, ...(SEED !== undefined && { seed: Number(SEED) }) },
  );
});

/** A page of this size costs twenty times as much. */
const LARGE_STORIES = Math.ceil(STORIES / 20);

test.each(
  largeSchemes,
)("polling large pages with $name publishes each item exactly once in random sequences of inserts, faults and restarts", async (scheme) => {
  await fc.assert(
    fc.asyncProperty(story, (steps) => live(upstream, scheme, steps)),
    { numRuns: LARGE_STORIES, ...(SEED !== undefined && { seed: Number(SEED) }) },
  );
});
