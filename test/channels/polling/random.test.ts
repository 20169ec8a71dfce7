import fc from "fast-check";
import { afterAll, beforeAll, test } from "vitest";
import { PollUpstream } from "../../support/poll-upstream.ts";
import { live, schemes, story } from "./random-stories.ts";

/** The same stories each time; `test/deep` tells many more, and others each time. */
const SEED = 20_260_131;
const STORIES = 2;

let upstream: PollUpstream;
beforeAll(async () => {
  upstream = await PollUpstream.start();
});
afterAll(() => upstream[Symbol.asyncDispose]());

test.each(
  schemes.map((scheme, i) => ({ ...scheme, seed: SEED + i })),
)("$name: nothing lost, nothing doubled", async ({ seed, ...scheme }) => {
  await fc.assert(
    fc.asyncProperty(story, (told) => live(upstream, scheme, told)),
    { numRuns: STORIES, seed },
  );
});
