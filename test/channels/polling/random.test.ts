import fc from "fast-check";
import { test } from "vitest";
import { opened } from "../../support/opened.ts";
import { PollUpstream } from "../../support/poll-upstream.ts";
import { live, schemes, story } from "./random-stories.ts";

/** The same stories each time; `test/deep/polling-random.test.ts` tells many more, and others each time. */
const SEED = 20_260_131;
const STORIES = 1;

const upstream = opened(() => PollUpstream.start());

test.each(
  schemes.map((scheme, i) => ({ ...scheme, seed: SEED + i })),
)("$name: nothing lost, nothing doubled", async ({ seed, ...scheme }) => {
  await fc.assert(
    fc.asyncProperty(story, (told) => live(upstream, scheme, told)),
    { numRuns: STORIES, seed },
  );
});
