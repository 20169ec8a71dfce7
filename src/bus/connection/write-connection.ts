import { Command, Redis } from "ioredis";
import { addressName, type RedisAddress } from "../../lib/addresses/redis-address.ts";
import { UnavailableError } from "../../lib/errors.ts";
import type { LuaScript } from "../../lib/lua.ts";
import { withTimeout } from "../../lib/wait.ts";
import type { Log } from "../../log.ts";
import { type DurabilityDemand, type DurabilityWait, durabilityProblem, waitFor } from "./durability.ts";
import { CLIENT_OPTIONS, reconnectMs } from "./general-connection.ts";
import { type NodeFacts, passingProblem, readNodeFacts, type SendCommand, unfitness } from "./node-facts.ts";
import { NotDurableError, replyCode, toBusError, writeRefusal } from "./redis-errors.ts";
import { CommandBuffers, SentCommand } from "./sent-command.ts";

const DEADLINE_CHECK_MS = 100;
const UNFIT_RECHECK_MS = 300;
const WAIT_TIMEOUT_MS = 2000;
/** A script that may write, and does not: the shebang makes Redis refuse it where it would refuse any write, in any slot. */
const NO_WRITE = "#!lua\nreturn 0";

export interface WriteConnectionOptions {
  readonly address: RedisAddress;
  readonly demand: DurabilityDemand;
  readonly log: Log;
  readonly writeTimeoutMs: number;
  readonly checkEveryMs: number;
  /** Loaded on each connect, before anything is sent. */
  readonly scripts: readonly LuaScript[];
}

/**
 * The connection to one master that events are written through. Nothing is queued while it is away and
 * nothing is sent twice. It opens once the server was looked at and found fit, and again after each
 * reconnect.
 */
export interface WriteConnection extends AsyncDisposable {
  readonly name: string;
  /** The facts of the last look; undefined until the first one. */
  readonly facts: NodeFacts | undefined;
  /** Why nothing can be written now. */
  readonly problem: string | undefined;
  /** Why the server took no writes when it was last asked to; it is asked again all the same. */
  readonly refusal: string | undefined;
  /**
   * Sends one command. Commands of one tick keep their order on the wire.
   *
   * @param sinceMs when the write began to wait (`performance.now()`): it fails `writeTimeoutMs` later.
   * @throws UnavailableError when it was not sent or its outcome is unknown; Redis' own error replies as they are.
   */
  send(command: string, args: readonly (string | Buffer)[], sinceMs: number): Promise<unknown>;
  /** How a write ended: an error that would meet any other write is the refusal until one is taken. */
  noteWrite(error?: unknown): void;
  /** Looks at the server again at once: a reply said that something has changed. */
  check(): void;
  /** Resolves when open; rejects as `send` would once `timeoutMs` have passed. */
  opened(timeoutMs: number): Promise<void>;
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
  let problem: string | undefined = `not connected to ${name}`;
  let refusal: string | undefined;
  let checkTimer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let lookingAt: Redis | undefined;
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

  function noteWrite(error?: unknown) {
    const next = error === undefined ? undefined : writeRefusal(error);
    // An error that is of one write alone says nothing about others.
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
      // A server that says nothing to a handshake. Writes and looks have deadlines of their own, which come first.
      socketTimeout: 2 * writeTimeoutMs,
      connectionName: "inlet-write",
      retryStrategy: (times) => reconnectMs(times - 1),
    });
    next.on("ready", () => {
      if (next === redis) look();
    });
    next.on("close", () => {
      if (next === redis && !isClosed) setProblem(`not connected to ${name}`);
    });
    next.on("error", (error: Error) =>
      log.debug({ event: "redis.error", redis: name, err: error }, "an error of a Redis connection"),
    );
    next.connect().catch(() => {});
    return next;
  }

  /** Looks at the server, opens or closes the gate, and comes back. */
  function look() {
    clearTimeout(checkTimer);
    // One look at a time: many refusals may ask for one at once.
    if (lookingAt === redis) return;
    const seen = redis;
    lookingAt = seen;
    const send: SendCommand = (command, args) =>
      seen.sendCommand(new Command(command, [...args], { replyEncoding: "utf8" })) as Promise<unknown>;
    // Under the deadline of writes: also where nothing is written, a silent server is noticed.
    const silence = Promise.withResolvers<never>();
    const entry: Pending = { sinceMs: performance.now(), reject: silence.reject };
    pending.add(entry);
    const inspected = Promise.race([inspect(send), silence.promise]).finally(() => {
      pending.delete(entry);
      if (lookingAt === seen) lookingAt = undefined;
    });
    const unseen = (error: unknown): string =>
      `${name} cannot be looked at: ${error instanceof Error ? error.message : error}`;
    void inspected.catch(unseen).then((next) => {
      if (isClosed || seen !== redis || seen.status !== "ready") return;
      setProblem(next);
      const isWell = next === undefined && refusal === undefined;
      checkTimer = setTimeout(look, isWell ? options.checkEveryMs : UNFIT_RECHECK_MS);
    });
  }

  async function inspect(send: SendCommand) {
    facts = await readNodeFacts(send);
    const found = unfitness(facts) ?? passingProblem(facts) ?? durabilityProblem(facts, demand);
    if (found === undefined && problem !== undefined) {
      await Promise.all(options.scripts.map(({ text }) => send("script", ["load", text])));
    }
    if (found === undefined) await tryWrite(send, facts).then(() => noteWrite(), noteTried);
    return found;
  }

  /** A user of Redis who may run known scripts only is refused this one, and writes all the same. */
  const noteTried = (error: unknown): void => {
    if (replyCode(error) !== "NOPERM") noteWrite(error);
  };

  /** Also where no event comes, or none any more, since this gateway says that it is not ready. */
  async function tryWrite(send: SendCommand, seen: NodeFacts) {
    await send("eval", [NO_WRITE, "0"]);
    if (refusal !== undefined) await awaitDurability({ send }, waitFor(seen, demand));
  }

  let checkedAtMs = performance.now();
  let cameLate = false;
  const deadlines = setInterval(() => {
    const nowMs = performance.now();
    // Timers come before sockets: after a stall of this thread the answers are still to be read. They get one more turn.
    cameLate = !cameLate && nowMs - checkedAtMs > 2 * DEADLINE_CHECK_MS;
    checkedAtMs = nowMs;
    if (cameLate) return;
    if (![...pending].some(({ sinceMs }) => sinceMs <= nowMs - writeTimeoutMs)) return;
    log.warn(
      { event: "redis.silent", redis: name, pending: pending.size },
      "Redis does not answer; the connection is made anew",
    );
    const stuck = redis;
    redis = connect();
    setProblem(`${name} does not answer`);
    failPending(
      new UnavailableError(`no answer from ${name} within ${writeTimeoutMs} ms; the outcome is unknown`),
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
    get problem() {
      return problem;
    },
    get refusal() {
      return refusal;
    },
    noteWrite,
    send(command, args, sinceMs) {
      if (problem !== undefined) return Promise.reject(new UnavailableError(problem));
      // A later piece of a delivery that has used up its time is no reason to break the connection.
      if (performance.now() - sinceMs >= writeTimeoutMs) {
        return Promise.reject(new UnavailableError(`${name} was too slow for all of a delivery`));
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
    check: look,
    opened(timeoutMs) {
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

/**
 * Sends the waits in the same tick as the write, so that they follow it; resolves when enough is reported.
 *
 * @throws NotDurableError
 */
export async function awaitDurability(
  { send }: { readonly send: (command: string, args: string[], sinceMs: number) => Promise<unknown> },
  wait: DurabilityWait,
  sinceMs = performance.now(),
): Promise<void> {
  const timeout = String(WAIT_TIMEOUT_MS);
  const fsync = wait.localFsync ? send("waitaof", ["1", "0", timeout], sinceMs) : undefined;
  const replicas = wait.replicas > 0 ? send("wait", [String(wait.replicas), timeout], sinceMs) : undefined;
  const [fsynced, replicated] = await Promise.all([fsync, replicas]);
  if (fsync !== undefined && !(Array.isArray(fsynced) && Number(fsynced[0]) >= 1)) {
    throw new NotDurableError("the append-only file was not synced in time");
  }
  if (replicas !== undefined && !(Number(replicated) >= wait.replicas)) {
    throw new NotDurableError(`${replicated} of ${wait.replicas} replicas have the write`);
  }
}
