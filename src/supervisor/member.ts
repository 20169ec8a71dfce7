import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Machine, OwnReadings } from "../gateway/machine.ts";
import type { HealthReport } from "../http/health.ts";
import { createLeasedBudgets, type LeasedBudgets } from "../limits/leased-budgets.ts";
import { createSharedRates } from "../limits/shared-rates.ts";
import type { MachineReading, Readings, StartMessage, ToProcess, ToSupervisor } from "./messages.ts";

/** Maximum time in ms for which a replaced process keeps connections that send no request. */
const REPLACED_MS = 10_000;
const POLL_MS = 20;
/** Interval in ms at which processes exchange the tokens that they have taken from rate limits. */
const RATES_MS = 20;
/** Interval in ms at which processes return unused slices of budgets. */
const RETURN_MS = 100;
/** Exit code of a process whose supervisor has ended. */
const ORPHANED = 1;

/** The side of a gateway process in its connection to the supervisor. */
export interface Member {
  readonly start: StartMessage;
  readonly machine: Machine;
  /** Aborts when the supervisor stops this process. */
  readonly signal: AbortSignal;
  /** Resolves when the process may stop accepting requests. */
  readonly beforeClosing: () => Promise<void>;
  /** Reports that the gateway is ready. `greet` is called at most once, in the process that greets the operator. */
  readonly ready: (greet: () => Promise<void>) => void;
  /** Sends the last metrics and ends the connection to the supervisor. */
  readonly leave: () => Promise<void>;
}

/** Joins the supervisor that has started this process. The process exits at once when the supervisor ends. */
export async function joinSupervisor(): Promise<Member> {
  if (process.send === undefined) throw new Error("--supervised is only for processes that Inlet starts");
  const exitOrphaned = (): void => process.exit(ORPHANED);
  process.on("disconnect", exitOrphaned);
  // The terminal, npm and systemd may signal all processes. Only the supervisor decides when a process stops.
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) process.on(signal, () => {});
  const send = (message: ToSupervisor): void => void process.send?.(message);

  const started = Promise.withResolvers<StartMessage>();
  const stopping = new AbortController();
  const closing = Promise.withResolvers<void>();
  const open = new Set<Socket>();
  const answers = new Map<number, (answer: HealthReport | string) => void>();
  let receive: ((socket: Socket) => void) | undefined;
  let own: OwnReadings | undefined;
  let greet: (() => Promise<void>) | undefined;
  let problems: readonly string[] = [];
  let asked = 0;
  let budgets: LeasedBudgets | undefined;

  const rates = createSharedRates({ send: (taken) => send({ type: "rates", taken }) });
  setInterval(rates.flush, RATES_MS).unref();

  const untilIdle = async (): Promise<void> => {
    const deadline = performance.now() + REPLACED_MS;
    while (open.size > 0 && performance.now() < deadline) await delay(POLL_MS);
  };
  const report = async (what: keyof Readings, id: number): Promise<void> => {
    const reading = await own?.[what]().catch(() => undefined);
    send({ type: "reported", id, reading });
  };
  process.on("message", (message: ToProcess, socket?: Socket) => {
    if (message.type === "connection") {
      send({ type: "took" });
      // The client may have ended the connection on the way.
      if (socket === undefined) return;
      open.add(socket);
      socket.once("close", () => open.delete(socket));
      receive?.(socket);
    } else if (message.type === "start") started.resolve(message);
    else if (message.type === "report") void report(message.what, message.id);
    else if (message.type === "answer") answers.get(message.id)?.(message.answer);
    else if (message.type === "rates") rates.receive(message.taken);
    else if (message.type === "leased" || message.type === "recall") budgets?.receive(message);
    else if (message.type === "servers") problems = message.problems;
    else if (message.type === "greet") void greet?.().then(() => send({ type: "greeted" }));
    else if (message.type === "drain") {
      stopping.abort(new Error("stopped by the supervisor"));
      if (message.isReplaced) void untilIdle().then(closing.resolve);
    } else closing.resolve();
  });

  async function ask(what: MachineReading): Promise<HealthReport | string> {
    const id = ++asked;
    const { promise, resolve } = Promise.withResolvers<HealthReport | string>();
    answers.set(id, resolve);
    send({ type: "ask", what, id });
    return promise.finally(() => answers.delete(id));
  }

  const start = await started.promise;
  const { port, dataDir, processes, sourceShare, database, redisUrl, areEmbedded, isNewKey } = start;
  budgets = createLeasedBudgets({ send, processes });
  setInterval(budgets.flush, RETURN_MS).unref();
  return {
    start,
    signal: stopping.signal,
    machine: {
      dataDir,
      processes,
      stores: { database, redisUrl, areEmbedded, isNewKey, problems: () => problems },
      connections: {
        port,
        open,
        receive(take) {
          receive = take;
          send({ type: "listening" });
        },
      },
      sourceShare,
      rates,
      budgets,
      health: async () => (await ask("health")) as HealthReport,
      metrics: async (format) => (await ask(format)) as string,
      provide(readings) {
        own = readings;
      },
    },
    beforeClosing: () => closing.promise,
    ready(greetOperator) {
      greet = greetOperator;
      send({ type: "ready" });
    },
    async leave() {
      const metrics = await own?.metrics().catch(() => undefined);
      process.off("disconnect", exitOrphaned);
      await new Promise<void>((resolve) => {
        const last: ToSupervisor = { type: "last", metrics: metrics ?? [] };
        process.send?.(last, undefined, {}, () => resolve());
      });
      if (process.connected) process.disconnect();
    },
  };
}
