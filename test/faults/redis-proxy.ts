import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

/** Phases of a publish as seen by a proxy between the gateway and Redis. */
export const PHASES = ["before", "during", "after"] as const;
/**
 * In `before`, the script was sent but not received by Redis. In `during`, Redis has received it but not replied. In `after`, Redis has
 * replied but the gateway has not received the reply.
 */
export type Phase = (typeof PHASES)[number];

export interface RedisProxy extends AsyncDisposable {
  readonly port: number;
  /**
   * Runs `act` once, at the next publish that reaches the phase. The publish is delayed until `act` resolves.
   *
   * @param topicPart text that the publish must contain, such as a part of a topic
   */
  readonly arm: (phase: Phase, act: Act, topicPart?: string) => void;
  readonly disarm: () => void;
}

/** Called with a function that ends the connection of the publish, and the port from which the gateway has connected. */
type Act = (cut: () => void, port: number) => void | Promise<void>;

interface Trap {
  readonly phase: Phase;
  readonly act: Act;
  readonly topicPart: string;
}

/** Starts a proxy between a gateway and a local Redis that can delay the publish script or its reply. */
export async function startRedisProxy(redisPort: number): Promise<RedisProxy> {
  let trap: Trap | undefined;
  const open = new Set<Socket>();

  const take = (phase: Phase, scripts: string): Trap | undefined => {
    if (trap?.phase !== phase || !scripts.includes(trap.topicPart)) return undefined;
    const taken = trap;
    trap = undefined;
    return taken;
  };

  const server = createServer((gateway) => {
    const redis = connect(redisPort, "127.0.0.1");
    /** Text of the publish calls that Redis has not replied to yet. */
    let scripts = "";
    const cut = (): void => {
      gateway.destroy();
      redis.destroy();
    };
    const port = gateway.remotePort ?? 0;
    for (const socket of [gateway, redis]) {
      open.add(socket);
      socket.on("error", cut);
      socket.on("close", () => {
        open.delete(socket);
        cut();
      });
    }
    pump(gateway, redis, async (chunk) => {
      const text = chunk.toString("latin1");
      if (!/EVALSHA/i.test(text) || !text.includes("events.")) return [];
      scripts += text;
      await take("before", text)?.act(cut, port);
      const during = take("during", text);
      return during === undefined ? [] : [() => during.act(cut, port)];
    });
    pump(redis, gateway, async () => {
      if (scripts === "") return [];
      const answered = scripts;
      scripts = "";
      await take("after", answered)?.act(cut, port);
      return [];
    });
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    arm: (phase, act, topicPart = "") => {
      trap = { phase, act, topicPart };
    },
    disarm: () => {
      trap = undefined;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Copies chunks in order. `inspect` can delay a chunk and return actions to run after it was forwarded. */
function pump(
  from: Socket,
  to: Socket,
  inspect: (chunk: Buffer) => Promise<readonly (() => void | Promise<void>)[]>,
): void {
  let previous: Promise<void> = Promise.resolve();
  from.on("data", (chunk: Buffer) => {
    previous = previous.then(async () => {
      const afterwards = await inspect(chunk);
      if (!to.destroyed) to.write(chunk);
      for (const act of afterwards) await act();
    });
  });
}
