import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { Config } from "../config/schema.ts";
import { explainBindError } from "../gateway/listener.ts";
import { startMetricsListener } from "../gateway/metrics-listener.ts";
import { lockDataDir, openStores, ownsServers, type Stores } from "../gateway/stores.ts";
import type { HealthReport } from "../http/health.ts";
import type { Log } from "../log.ts";
import { createMachineMetrics } from "../metrics/machine-metrics.ts";
import type { MetricsFormat } from "../metrics/open-metrics.ts";
import { combineHealth } from "./collect.ts";
import { openControlSocket } from "./control.ts";
import { createDistributor } from "./distribute.ts";
import { createFleet } from "./fleet.ts";
import { type GatewayProcess, startGatewayProcess } from "./gateway-process.ts";
import { createGreeter } from "./greeter.ts";
import { createLeases } from "./leases.ts";
import { createLineWriter } from "./log-lines.ts";
import type { StartMessage, ToSupervisor, Work } from "./messages.ts";
import { createStartingResponder } from "./starting-responder.ts";

/** Interval at which the counters of all processes are read, so that those of a killed process are not lost. */
const COUNTERS_MS = 5_000;
const SERVERS_MS = 250;

export interface SuperviseOptions {
  readonly log: Log;
  /** Aborts the start. */
  readonly signal: AbortSignal;
  /** Program of the processes. Defaults to `src/main.ts`. Tests use one that changes the timing of the gateway. */
  readonly program?: URL | undefined;
  /** Arguments of the command `start` for each process. */
  readonly args: readonly string[];
  /** Writes whole lines of the processes' output. */
  readonly write: (lines: string) => void;
  /** Called when the processes stop. Connections are accepted until it resolves. */
  readonly beforeClosing: () => Promise<unknown>;
}

/** Thrown if the first process ended before it was ready. It has already printed the reason. */
export class FirstProcessError extends Error {
  override readonly name = "FirstProcessError";
}

/**
 * Starts the embedded servers and several equal gateway processes, which share the port. This process accepts the connections and
 * distributes them. Resolves when the processes are ready. Disposal drains the processes, and stops the servers last.
 *
 * @throws DataDirInUseError, FirstProcessError, or an Error that suggests a fix
 */
export async function supervise(config: Config, options: SuperviseOptions): Promise<AsyncDisposable> {
  const { log, signal, program, args, write, beforeClosing } = options;
  await using opening = new AsyncDisposableStack();
  // Needed also with external servers, because the control socket is in the data directory.
  const { dataDir } = opening.use(lockDataDir(config));
  let starting = "is starting its embedded servers";
  const responder = opening.use(await createStartingResponder(config, () => starting));
  const distributor = createDistributor(responder.take);
  const { port, close: closePort } = opening.use(await acceptConnections(config, distributor.take));
  const stores = opening.use(await openStores(config, { dataDir, log, signal }));
  const metrics = createMachineMetrics();
  const leases = createLeases();
  const firstMessage = describeMachine(config, { dataDir, port, stores });

  function launch(number: number): GatewayProcess {
    const onOutput = createLineWriter(write);
    const start = { ...firstMessage, ...assignWork(number, config) };
    const started = startGatewayProcess({ start, program, args, onOutput, onMessage });
    void started.exited.then(() => {
      distributor.remove(started);
      metrics.end(started.key);
      leases.end(started);
    });
    return started;
  }

  function onMessage(message: ToSupervisor, from: GatewayProcess): void {
    if (message.type === "took") distributor.took(from);
    else if (message.type === "listening") {
      from.send({ type: "servers", problems: stores.problems() });
      if (from.servesConnections) distributor.add(from);
    } else if (message.type === "ready") {
      from.markReady();
      distributor.markReady(from);
      if (isFleetStarted) greeter.greet();
    } else if (message.type === "greeted") greeter.confirm(from);
    else if (message.type === "rates") {
      for (const other of fleet.running()) if (other !== from) other.send(message);
    } else if (message.type === "lease" || message.type === "returned") leases.receive(message, from);
    else if (message.type === "last") metrics.update(from.key, from.number, message.metrics);
    else if (message.type === "ask") {
      const { id } = message;
      const reading = message.what === "health" ? readHealth() : readMetrics(message.what);
      void reading.then((answer) => from.send({ type: "answer", id, answer }));
    }
  }

  const leaving = new WeakSet<GatewayProcess>();
  const fleet = createFleet({
    launch,
    log,
    onLeaving(process) {
      leaving.add(process);
      distributor.remove(process);
    },
  });
  const serving = (): readonly GatewayProcess[] =>
    fleet.running().filter((each) => each.isReady && !leaving.has(each));

  let isFleetStarted = false;
  const greeter = createGreeter(() => serving().find(({ servesConnections }) => servesConnections));

  async function readHealth(): Promise<HealthReport> {
    const reports = await Promise.all(serving().map((each) => each.report("health")));
    return combineHealth(reports, { ...config, recentlyEnded: fleet.countRecentEnds() });
  }

  async function updateMetrics(): Promise<void> {
    const ready = fleet.running().filter(({ isReady }) => isReady);
    await Promise.all(
      ready.map(async (each) => {
        const values = await each.report("metrics");
        if (values !== undefined) metrics.update(each.key, each.number, values);
      }),
    );
  }

  async function readMetrics(format: MetricsFormat): Promise<string> {
    await updateMetrics();
    return metrics.render(format);
  }

  opening.defer(() => {
    greeter.stop();
    return fleet.stop(async () => {
      await beforeClosing();
      closePort();
    });
  });
  const onAbort = (): void => void fleet.stop(async () => {});
  signal.addEventListener("abort", onAbort, { once: true });
  starting = "is starting its processes";
  opening.use(repeat(SERVERS_MS, createProblemReporter(stores, fleet.running)));
  const started = await fleet.start(config.processes);
  signal.removeEventListener("abort", onAbort);
  signal.throwIfAborted();
  if (!started.ok) throw new FirstProcessError(`the first process ended with ${started.ended}`);
  opening.use(repeat(COUNTERS_MS, () => void updateMetrics()));
  if (config.metricsListen) {
    const listening = { clock: Date.now, log, metrics: { render: readMetrics } };
    opening.use(await startMetricsListener(config.metricsListen, listening));
  }
  opening.use(await openControlSocket(dataDir, { restart: fleet.restart }));
  isFleetStarted = true;
  greeter.greet();
  const { processes } = config;
  log.info({ event: "supervisor.ready", port, processes }, "all gateway processes are started");
  return opening.move();
}

/** Binds the port exclusively, and keeps it until disposal. Connections are not read here. */
async function acceptConnections(
  { host, port }: Pick<Config, "host" | "port">,
  take: (socket: Socket) => void,
) {
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) => {
    socket.on("error", () => {});
    take(socket);
  });
  server.listen({ host, port, exclusive: true });
  await once(server, "listening").catch((cause: unknown) => {
    throw explainBindError(cause, { host, port });
  });
  const close = (): void => void (server.listening && server.close());
  return { port: (server.address() as AddressInfo).port, close, [Symbol.dispose]: close };
}

const describeMachine = (
  config: Config,
  { dataDir, port, stores }: { readonly dataDir: string; readonly port: number; readonly stores: Stores },
): StartMessage => ({
  type: "start",
  ...assignWork(1, config),
  processes: config.processes,
  dataDir,
  port,
  database: stores.database,
  redisUrl: stores.redisUrl,
  areEmbedded: ownsServers(config),
  isNewKey: stores.keys.isNew ?? false,
});

/** The last processes do the background work, if any is separate. */
function assignWork(number: number, { processes, backgroundProcesses }: Config) {
  if (backgroundProcesses === 0)
    return { process: number, work: "all", sourceShare: { index: number - 1, count: processes } } as const;
  const connections = processes - backgroundProcesses;
  const work: Work = number > connections ? "background" : "connections";
  const index = Math.max(0, number - connections - 1);
  return { process: number, work, sourceShare: { index, count: backgroundProcesses } };
}

/** Returns a function that tells all processes when the problems of the embedded servers have changed. */
function createProblemReporter(stores: Stores, running: () => readonly GatewayProcess[]): () => void {
  let last = "";
  return () => {
    const problems = stores.problems();
    const text = problems.join();
    if (text !== last) for (const process of running()) process.send({ type: "servers", problems });
    last = text;
  };
}

function repeat(ms: number, run: () => void): Disposable {
  const timer = setInterval(run, ms).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
