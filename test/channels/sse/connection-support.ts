import type { SourceEnd } from "../../../src/channels/source.ts";
import { opened } from "../../support/opened.ts";
import { createRun, createStreamClient, type Script, startRawServer, type TestRun } from "./support.ts";

export const NOW_MS = Date.UTC(2026, 0, 1);

/** Opens one client per test file and connections on it. */
export function openedConnections() {
  const client = opened(() => createStreamClient(() => NOW_MS));
  /** Runs one connection to a server with this script. */
  async function runOnce(
    script: Script,
    config: object = {},
    changes: Parameters<typeof createRun>[1] = {},
  ): Promise<{
    readonly run: TestRun;
    readonly end: SourceEnd;
    readonly call: () => Record<string, unknown>;
  }> {
    await using server = await startRawServer(script);
    const run = createRun({ url: server.url, ...config }, changes);
    const end = await client.run(run);
    return { run, end, call: () => ({ ...server.calls[0] }) };
  }
  return { client, runOnce };
}

export const at = (lastEventId: string, n = 1): string => JSON.stringify({ lastEventId, n });
export const messages = (...data: readonly string[]): string =>
  data.map((text) => `data: ${text}\n\n`).join("");
