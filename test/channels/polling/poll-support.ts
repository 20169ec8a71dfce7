import { beforeEach } from "vitest";
import { opened } from "../../support/opened.ts";
import { AnswerServer } from "./answer-server.ts";
import { type Config, PollRig, type RigOptions } from "./support.ts";

export const NOW = Date.UTC(2026, 0, 31);

/** Opens a server and channels that poll it. */
export function openedPolls() {
  const server = openedAnswers();
  const rigOf = ({ request, ...rest }: Partial<Config> = {}, options: Partial<RigOptions> = {}): PollRig =>
    new PollRig({
      clock: () => NOW,
      ...options,
      config: {
        request: { ...request, url: request?.url ?? `${server.origin}/rows` },
        discriminator: { by: "seenSet" },
        itemId: "$.id",
        itemsPath: "$.rows",
        startAt: "earliest",
        ...rest,
      },
    });
  return { server, rigOf };
}

/** Opens one server per test file. Its requests are cleared before each test. */
export function openedAnswers(): AnswerServer {
  const server = opened(() => AnswerServer.start());
  beforeEach(() => {
    server.requests.length = 0;
  });
  return server;
}

export const rows = (...ids: unknown[]) => ({ rows: ids.map((id) => ({ id })) });
export const idsOf = (rig: PollRig): string[] => rig.log.map(({ id }) => id);
