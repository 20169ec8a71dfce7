import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

/** A moment in the life of one publish, seen from between the gateway and Redis. */
export const PHASES = ["before", "during", "after"] as const;
/**
 * `before`: the script is on its way, Redis has not seen it. `during`: Redis has it, the answer is not there yet. `after`:
 * Redis has executed it and answered, the gateway has not read that.
 */
export type Phase = (typeof PHASES)[number];

export interface RedisProxy extends AsyncDisposable {
  readonly port: number;
  /** Runs `act` once, at the next publish that reaches the phase; the publish goes no further until it resolves. */
  readonly arm: (phase: Phase, act: (cut: () => void) => void | Promise<void>) => void;
  readonly disarm: () => void;
}

interface Trap {
  readonly phase: Phase;
  readonly act: (cut: () => void) => void | Promise<void>;
}

/** Stands between a gateway and a Redis on the loopback, and can stop time around the script that publishes. */
export async function startRedisProxy(redisPort: number): Promise<RedisProxy> {
  let trap: Trap | undefined;
  const open = new Set<Socket>();

  const take = (phase: Phase): Trap | undefined => {
    if (trap?.phase !== phase) return undefined;
    const taken = trap;
    trap = undefined;
    return taken;
  };

  const server = createServer((gateway) => {
    const redis = connect(redisPort, "127.0.0.1");
    let scripts = 0;
    const cut = (): void => {
      gateway.destroy();
      redis.destroy();
    };
    for (const socket of [gateway, redis]) {
      open.add(socket);
      socket.on("error", cut);
      socket.on("close", () => {
        open.delete(socket);
        cut();
      });
    }
    pump(gateway, redis, async (chunk) => {
      if (!/EVALSHA/i.test(chunk.toString("latin1")) || !chunk.includes("events.")) return [];
      scripts++;
      await take("before")?.act(cut);
      const during = take("during");
      return during === undefined ? [] : [() => during.act(cut)];
    });
    pump(redis, gateway, async () => {
      if (scripts === 0) return [];
      scripts = 0;
      await take("after")?.act(cut);
      return [];
    });
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    arm: (phase, act) => {
      trap = { phase, act };
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

/** Copies in order; `inspect` may hold a chunk back, and name what is to happen once it was passed on. */
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
