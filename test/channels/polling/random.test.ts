import fc from "fast-check";
import { test } from "vitest";
import { opened } from "../../support/opened.ts";
import { PollUpstream } from "../../support/poll-upstream.ts";
import { live, schemes, story } from "./random-stories.ts";

/** A fixed seed generates the same stories in each run. `test/deep/polling-random.test.ts` runs many more, with random seeds. */
const SEED = 20_260_131;
const STORIES = 1;

const upstream = opened(() => PollUpstream.start());

test.each(
  schemes.map((scheme, i) => ({ ...scheme, seed: SEED + i })),
)("polling a simulated API ($name) loses and duplicates no item", async ({ seed, ...scheme }) => {
  await fc.assert(
    fc.asyncProperty(story, (sample) => live(upstream, scheme, sample)),
    { numRuns: STORIES, seed },
  );
});
