import { type ChildProcess, fork } from "node:child_process";
import type { Socket } from "node:net";
import type { Readings, StartMessage, ToProcess, ToSupervisor } from "./messages.ts";

const MAIN = new URL("../main.ts", import.meta.url);
/** Maximum time for a process to report its health or metrics, in ms. */
const REPORT_MS = 1_500;

export interface GatewayProcessOptions {
  readonly start: StartMessage;
  /** Program that runs the command `start`. Defaults to `src/main.ts`. */
  readonly program?: URL | undefined;
  /** Arguments of the command `start`. */
  readonly args: readonly string[];
  readonly onOutput: (chunk: string) => void;
  readonly onMessage: (message: ToSupervisor, from: GatewayProcess) => void;
}

/** A gateway process that this supervisor has started. */
export interface GatewayProcess {
  /** Unique among all processes of this supervisor. */
  readonly key: number;
  readonly number: number;
  readonly servesConnections: boolean;
  readonly pid: number | undefined;
  /** Resolves when the process has ended, with its exit code or signal. */
  readonly exited: Promise<number | string>;
  readonly isReady: boolean;
  readonly markReady: () => void;
  /** Resolves with true when the process is ready, and with false if it ends before. */
  readonly started: Promise<boolean>;
  readonly send: (message: ToProcess) => void;
  readonly pass: (socket: Socket) => boolean;
  /** Returns `undefined` if the process does not report in time. */
  readonly report: <T extends keyof Readings>(what: T) => Promise<Readings[T] | undefined>;
  readonly kill: () => void;
}

let processes = 0;

export function startGatewayProcess(options: GatewayProcessOptions): GatewayProcess {
  const { start, program = MAIN, args, onOutput, onMessage } = options;
  const child: ChildProcess = fork(program, ["start", "--supervised", ...args], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
    // JSON would turn the values NaN and Infinity of metrics into null.
    serialization: "advanced",
  });
  const reports = new Map<number, (reading: Readings[keyof Readings] | undefined) => void>();
  const { promise: exited, resolve } = Promise.withResolvers<number | string>();
  let asked = 0;
  let isReady = false;
  const { promise: started, resolve: settleStart } = Promise.withResolvers<boolean>();
  void exited.then(() => settleStart(false));
  child.once("error", (error) => resolve(error.message));
  // At `close`, all output has been read.
  child.once("close", (code, signal) => resolve(signal ?? code ?? 1));
  child.stdout?.setEncoding("utf8").on("data", onOutput);
  // If the process ends meanwhile, its `exited` resolves, which replaces it.
  const send = (message: ToProcess): void => void (child.connected && child.send(message, () => {}));
  const self: GatewayProcess = {
    key: ++processes,
    number: start.process,
    servesConnections: start.work !== "background",
    pid: child.pid,
    exited,
    started,
    get isReady() {
      return isReady;
    },
    markReady() {
      isReady = true;
      settleStart(true);
    },
    send,
    pass(socket) {
      if (!child.connected) return false;
      child.send({ type: "connection" } satisfies ToProcess, socket, (error) => error && socket.destroy());
      return true;
    },
    async report<T extends keyof Readings>(what: T) {
      const id = ++asked;
      const { promise, resolve: settle } = Promise.withResolvers<Readings[keyof Readings] | undefined>();
      reports.set(id, settle);
      const timer = setTimeout(settle, REPORT_MS, undefined);
      void exited.then(() => settle(undefined));
      send({ type: "report", what, id });
      const reading = await promise;
      clearTimeout(timer);
      reports.delete(id);
      return reading as Readings[T] | undefined;
    },
    kill: () => void child.kill("SIGKILL"),
  };
  child.on("message", (message: ToSupervisor) => {
    if (message.type === "reported") reports.get(message.id)?.(message.reading);
    else onMessage(message, self);
  });
  send(start);
  return self;
}
