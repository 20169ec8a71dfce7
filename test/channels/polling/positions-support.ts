import { beforeEach, expect } from "vitest";
import { json } from "./answer-server.ts";
import { openedAnswers } from "./poll-support.ts";
import { type Config, PollRig } from "./support.ts";

export const SINCE = { since: "{{cursor}}" };

/** Opens a server, channels that poll it, and their clock. */
export function openedPositions() {
  const server = openedAnswers();
  const clock = { nowMs: 0 };
  beforeEach(() => {
    clock.nowMs = Date.UTC(2026, 0, 31, 12);
  });
  const rigOf = (
    config: Partial<Config> & Pick<Config, "discriminator">,
    query: Record<string, string> = {},
  ) =>
    new PollRig({
      clock: () => clock.nowMs,
      config: {
        request: { url: `${server.origin}/`, query },
        itemsPath: "$",
        itemId: "$.id",
        startAt: "earliest",
        ...config,
      },
    });
  /** Runs one poll per page. */
  async function pollEach(rig: PollRig, ...pages: readonly unknown[]): Promise<string[]> {
    for (const page of pages) {
      server.answers = [json(page)];
      expect(await rig.pollAll()).toEqual({ kind: "done" });
    }
    return rig.log.map(({ id }) => id);
  }
  const queries = () => server.requests.map(({ url }) => decodeURIComponent(url.replace(/^\/\??/, "")));
  return { server, clock, rigOf, pollEach, queries };
}

export const at = (second: number, id: string | number = second) => ({
  id,
  at: new Date(Date.UTC(2026, 0, 31, 10, 0, second)).toISOString(),
});
