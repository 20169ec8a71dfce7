import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startCuttableLink } from "../support/cuttable-link.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import type { SharedStores } from "../support/stores.ts";
import { findProcessByPort, readProcessIds } from "../support/supervised.ts";
import { CEILING_MS, until } from "../support/until.ts";
import { PHASES, type RedisProxy, startRedisProxy } from "./redis-proxy.ts";

/**
 * Faults of a worker. `stopped` (SIGSTOP) and `cut off` (from Redis) last longer than twice its lease. `process killed` kills the process
 * that writes, or a randomly chosen process at a random moment, for workers with several processes.
 */
export const FATES = ["killed", "stopped", "cut off", "restarted", "process killed"] as const;
export type Fate = (typeof FATES)[number];

/** Time of a fault: a phase of a write, or random. */
export const MOMENTS = [...PHASES, "random"] as const;
export type Moment = (typeof MOMENTS)[number];

/** A worker that runs sources behind a separate Redis proxy. */
export interface SourceWorker extends AsyncDisposable {
  readonly gateway: () => GatewayProcess;
  /** Applies a fault and resolves when the worker runs again. The affected write is delayed during the fault. */
  readonly strike: (fate: Fate, moment: Moment, topicPart: string) => Promise<void>;
}

export interface SourceWorkerOptions {
  readonly index: number;
  readonly processes: number;
  /** Chooses the process that is killed at a random moment. */
  readonly random: () => number;
}

const TIMING = { ttlMs: 2_000, tickEveryMs: 250, maxReleasedPerTick: 64 } as const;
/** Duration of `stopped` and `cut off` in ms. */
const OUT_MS = 2 * TIMING.ttlMs + 500;

export async function startSourceWorker(
  stores: SharedStores,
  { index, processes, random }: SourceWorkerOptions,
): Promise<SourceWorker> {
  const [server] = stores.servers;
  const proxy = await startRedisProxy(server?.port ?? 0);
  const link = await startCuttableLink(proxy.port);
  const start = (): Promise<GatewayProcess> =>
    startGatewayProcess(
      {
        ...stores.env,
        REDIS_URL: `redis://127.0.0.1:${link.port}`,
        INLET_DATA_DIR: join(stores.dir, `worker-${index}`),
        INLET_ALLOW_NETWORKS: "127.0.0.0/8",
        INLET_LOG_LEVEL: "warn",
        INLET_PROCESSES: String(processes),
      },
      { sourcesTiming: TIMING },
    );
  let gateway = await start();

  async function signalAll(signal: NodeJS.Signals): Promise<void> {
    for (const pid of [gateway.pid, ...(await readProcessIds(gateway.pid))]) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        // A process can end after its id was read.
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
  }

  /** @param port port from which the connection of the affected write reaches the proxy. `undefined` at a random moment. */
  async function applyFault(fate: Fate, port?: number): Promise<void> {
    switch (fate) {
      case "killed":
        gateway.kill("SIGKILL");
        await gateway.exited;
        return;
      case "stopped":
        await signalAll("SIGSTOP");
        await delay(OUT_MS);
        return;
      case "cut off":
        link.cut();
        await delay(OUT_MS);
        return;
      case "restarted":
        gateway.kill("SIGTERM");
        return;
      case "process killed": {
        const ids = await readProcessIds(gateway.pid);
        const victim =
          port === undefined
            ? ids[Math.floor(random() * ids.length)]
            : await findProcessByPort(ids, link.findClientPort(port) ?? 0);
        if (victim === undefined) throw new Error("The worker has no process to kill.");
        process.kill(victim, "SIGKILL");
        await until(async () => {
          const running = await readProcessIds(gateway.pid);
          return running.length === processes && !running.includes(victim);
        });
        return;
      }
      default:
        fate satisfies never;
    }
  }

  async function recover(fate: Fate): Promise<void> {
    switch (fate) {
      case "stopped":
        await signalAll("SIGCONT");
        return;
      case "process killed":
        return;
      case "cut off":
        link.restore();
        return;
      case "killed":
      case "restarted":
        await gateway.exited;
        gateway = await start();
        return;
      default:
        fate satisfies never;
    }
  }

  return {
    gateway: () => gateway,
    async strike(fate, moment, topicPart) {
      try {
        if (moment === "random") await applyFault(fate);
        else await trap(proxy, moment, topicPart, (port) => applyFault(fate, port));
        await recover(fate);
      } catch (cause) {
        throw new Error(`Worker ${index} did not recover. Its output:\n${gateway.output()}`, { cause });
      }
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await link[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

/** Delays the next matching write, runs `act` meanwhile, and resolves afterwards. */
async function trap(
  proxy: RedisProxy,
  moment: Exclude<Moment, "random">,
  topicPart: string,
  act: (port: number) => Promise<void>,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => {
    proxy.disarm();
    reject(new Error(`no event of ${topicPart} was published in time`));
  }, CEILING_MS);
  proxy.arm(
    moment,
    (_, port) => {
      clearTimeout(timer);
      return act(port).then(resolve, reject);
    },
    topicPart,
  );
  await promise;
}
