import { Command, Redis } from "ioredis";
import { addressName, type RedisAddress } from "../../lib/addresses/redis-address.ts";
import { UnavailableError } from "../../lib/errors.ts";
import type { LuaScript } from "../../lib/lua.ts";
import { withTimeout } from "../../lib/wait.ts";
import type { Log } from "../../log.ts";
import {
  awaitDurability,
  type DurabilityDemand,
  type DurabilityWait,
  durabilityProblem,
  requiredWait,
} from "./durability.ts";
import { CLIENT_OPTIONS, reconnectMs } from "./general-connection.ts";
import {
  findTemporaryProblem,
  findUnfitReason,
  type NodeFacts,
  readNodeFacts,
  type SendCommand,
} from "./node-facts.ts";
import { findWriteRejection, replyCode, toBusError } from "./redis-errors.ts";
import { CommandBuffers, SentCommand } from "./sent-command.ts";

const DEADLINE_CHECK_MS = 100;
const UNFIT_RECHECK_MS = 300;
/**
 * An empty script to test whether Redis accepts writes. Redis treats the script as a write, because it has no `no-writes` flag. Redis
 * rejects it whenever it rejects all writes.
 */
const WRITE_PROBE = "#!lua\nreturn 0";

export interface WriteConnectionOptions {
  readonly address: RedisAddress;
  readonly demand: DurabilityDemand;
  readonly log: Log;
  readonly writeTimeoutMs: number;
  readonly checkEveryMs: number;
  /** Lua scripts to load after each connect, before the first write. */
  readonly scripts: readonly LuaScript[];
}

/**
 * Connection to one Redis master for publishing. Never sends a command twice, and rejects commands while disconnected.
 *
 * After each connect, it opens only if the server meets the requirements.
 */
export interface WriteConnection extends AsyncDisposable {
  readonly name: string;
  /** Facts about the server from the last check. `undefined` before the first check. */
  readonly facts: NodeFacts | undefined;
  /** Commands that must follow each batch of writes. `undefined` if none are needed, and before the first check. */
  readonly wait: DurabilityWait | undefined;
  /** Reason why the connection accepts no writes, or `undefined` if it accepts writes. */
  readonly problem: string | undefined;
  /** Reason why the server rejected the last write, or `undefined` if it accepted the write. Later writes are still attempted. */
  readonly writeRejection: string | undefined;
  /**
   * Commands sent in the same tick reach Redis in the order of the calls.
   *
   * @param sinceMs time at which the caller began to wait (`performance.now()`). The write fails `writeTimeoutMs` later.
   * @throws UnavailableError when the command was not sent or its outcome is unknown. Other Redis error replies are thrown unchanged.
   */
  send(command: string, args: readonly (string | Buffer)[], sinceMs: number): Promise<unknown>;
  /** Records the result of a write. An error that affects every write is reported as `writeRejection` until a write succeeds. */
  recordWriteResult(error?: unknown): void;
  /** Checks the server now. Call this after a reply that shows a changed state of the server. */
  check(): void;
  /** Resolves when the connection accepts writes. Rejects like `send` after `timeoutMs`. */
  waitUntilOpen(timeoutMs: number): Promise<void>;
}

interface Pending {
  readonly sinceMs: number;
  readonly reject: (error: unknown) => void;
}

export function openWriteConnection(options: WriteConnectionOptions): WriteConnection {
  const { address, demand, log, writeTimeoutMs } = options;
  const name = addressName(address);
  const pending = new Set<Pending>();
  const buffers = new CommandBuffers();
  let redis: Redis;
  let facts: NodeFacts | undefined;
  let wait: DurabilityWait | undefined;
  let problem: string | undefined = `not connected to ${name}`;
  let refusal: string | undefined;
  let checkTimer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let inspecting: Redis | undefined;
  let openedNow = Promise.withResolvers<void>();

  function setProblem(next: string | undefined) {
    if (next === problem) return;
    problem = next;
    if (next === undefined) {
      log.info({ event: "redis.ready", redis: name }, "Redis accepts events");
      openedNow.resolve();
      openedNow = Promise.withResolvers();
    } else {
      log.warn({ event: "redis.not_ready", redis: name, problem: next }, "Redis does not accept events");
    }
  }

  function recordWriteResult(error?: unknown) {
    const next = error === undefined ? undefined : findWriteRejection(error);
    // Ignores errors that concern only one write.
    if (next === refusal || (error !== undefined && next === undefined)) return;
    const isNews = (next === undefined) !== (refusal === undefined);
    refusal = next;
    if (!isNews) return;
    if (next === undefined) log.info({ event: "redis.ready", redis: name }, "Redis accepts events");
    else log.warn({ event: "redis.not_ready", redis: name, problem: next }, "Redis does not accept events");
  }

  function connect(): Redis {
    const next = new Redis({
      ...address,
      ...CLIENT_OPTIONS,
      lazyConnect: true,
      enableOfflineQueue: false,
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
      // Detects a server that does not reply to the handshake. Writes and checks have shorter timeouts of their own.
      socketTimeout: 2 * writeTimeoutMs,
      connectionName: "inlet-write",
      retryStrategy: (times) => reconnectMs(times - 1),
    });
    next.on("ready", () => {
      if (next === redis) inspectServer();
    });
    next.on("close", () => {
      if (next === redis && !isClosed) setProblem(`not connected to ${name}`);
    });
    next.on("error", (error: Error) =>
      log.debug({ event: "redis.error", redis: name, err: error }, "Redis connection error"),
    );
    next.connect().catch(() => {});
    return next;
  }

  function inspectServer() {
    clearTimeout(checkTimer);
    // Run only one check at a time, because many rejected writes can request a check at the same moment.
    if (inspecting === redis) return;
    const seen = redis;
    inspecting = seen;
    const send: SendCommand = (command, args) =>
      seen.sendCommand(new Command(command, [...args], { replyEncoding: "utf8" })) as Promise<unknown>;
    // Gives the check the same timeout as a write, so that a hung server is detected even without traffic.
    const silence = Promise.withResolvers<never>();
    const entry: Pending = { sinceMs: performance.now(), reject: silence.reject };
    pending.add(entry);
    const inspected = Promise.race([inspect(send), silence.promise]).finally(() => {
      pending.delete(entry);
      if (inspecting === seen) inspecting = undefined;
    });
    const formatInspectError = (error: unknown): string =>
      `checking Redis at ${name} failed: ${error instanceof Error ? error.message : error}`;
    void inspected.catch(formatInspectError).then((next) => {
      if (isClosed || seen !== redis || seen.status !== "ready") return;
      setProblem(next);
      const isWell = next === undefined && refusal === undefined;
      checkTimer = setTimeout(inspectServer, isWell ? options.checkEveryMs : UNFIT_RECHECK_MS);
    });
  }

  async function inspect(send: SendCommand) {
    facts = await readNodeFacts(send);
    wait = requiredWait(facts, demand);
    const found = findUnfitReason(facts) ?? findTemporaryProblem(facts) ?? durabilityProblem(facts, demand);
    if (found === undefined && problem !== undefined) {
      await Promise.all(options.scripts.map(({ text }) => send("script", ["load", text])));
    }
    if (found === undefined) await probeWrite(send, wait).then(() => recordWriteResult(), recordProbeResult);
    return found;
  }

  /** Ignores the error NOPERM, because a Redis user that may run only known scripts can still publish. */
  const recordProbeResult = (error: unknown): void => {
    if (replyCode(error) !== "NOPERM") recordWriteResult(error);
  };

  /**
   * Sends a write that changes no data, to detect that Redis accepts writes again. Without it, a gateway that is not ready gets no
   * events and cannot recover.
   */
  async function probeWrite(send: SendCommand, needed: DurabilityWait | undefined) {
    await send("eval", [WRITE_PROBE, "0"]);
    if (refusal !== undefined && needed !== undefined) await awaitDurability({ send }, needed);
  }

  let checkedAtMs = performance.now();
  let isLateTick = false;
  const deadlines = setInterval(() => {
    const nowMs = performance.now();
    // Skip one check if this thread was blocked, so that replies that arrived meanwhile are read before they count as late.
    isLateTick = !isLateTick && nowMs - checkedAtMs > 2 * DEADLINE_CHECK_MS;
    checkedAtMs = nowMs;
    if (isLateTick) return;
    if (![...pending].some(({ sinceMs }) => sinceMs <= nowMs - writeTimeoutMs)) return;
    log.warn(
      { event: "redis.silent", redis: name, pending: pending.size },
      "Redis does not reply; reconnecting",
    );
    const stuck = redis;
    redis = connect();
    setProblem(`${name} does not reply`);
    failPending(
      new UnavailableError(`no reply from ${name} within ${writeTimeoutMs} ms; the outcome is unknown`),
    );
    stuck.disconnect();
  }, DEADLINE_CHECK_MS);
  deadlines.unref();

  function failPending(error: UnavailableError) {
    for (const { reject } of pending) reject(error);
    pending.clear();
  }

  redis = connect();

  return {
    name,
    get facts() {
      return facts;
    },
    get wait() {
      return wait;
    },
    get problem() {
      return problem;
    },
    get writeRejection() {
      return refusal;
    },
    recordWriteResult,
    send(command, args, sinceMs) {
      if (problem !== undefined) return Promise.reject(new UnavailableError(problem));
      // The deadline of a large delivery can pass before its last piece is sent. Only this delivery fails, because the connection still
      // works.
      if (performance.now() - sinceMs >= writeTimeoutMs) {
        return Promise.reject(
          new UnavailableError(
            `${name} was too slow: not all parts of the delivery were written within ${writeTimeoutMs} ms`,
          ),
        );
      }
      return new Promise((resolve, reject) => {
        const entry: Pending = { sinceMs, reject };
        pending.add(entry);
        const sent = new SentCommand(command, args, buffers);
        (redis.sendCommand(sent) as Promise<unknown>).then(
          (reply) => {
            sent.giveBack();
            pending.delete(entry);
            resolve(reply);
          },
          (error: unknown) => {
            pending.delete(entry);
            reject(toBusError(error));
          },
        );
      });
    },
    check: inspectServer,
    waitUntilOpen(timeoutMs) {
      if (problem === undefined) return Promise.resolve();
      return withTimeout(timeoutMs, openedNow.promise, problem);
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      clearInterval(deadlines);
      clearTimeout(checkTimer);
      problem = "closed";
      redis.disconnect();
      failPending(new UnavailableError("the connection to Redis was closed; the outcome is unknown"));
    },
  };
}
