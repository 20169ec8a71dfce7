import { toBusError } from "../../src/bus/connection/redis-errors.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import type { VirtualRedis } from "./virtual-redis.ts";
import type { Process, World } from "./world.ts";

interface Sent {
  /** Whether the connection was cut before the server received the command. */
  isLost: boolean;
  isSettled: boolean;
  readonly reject: (error: Error) => void;
}

/**
 * Simulated connection between a process and the server, which reconnects after a cut. Commands and replies are delayed but keep
 * their order. A cut loses a random suffix of the commands in flight, and the process does not know which ones.
 */
export class Link {
  readonly #world: World;
  readonly #process: Process;
  readonly #server: VirtualRedis;
  readonly #timeoutMs: number;
  /** Whether Redis errors are thrown unchanged, or converted as by the general connection. */
  readonly #isRaw: boolean;
  #inFlight: Sent[] = [];
  #arrivesMs = 0;
  #answersMs = 0;
  #connection = 0;
  cutUntilMs = 0;

  constructor(
    process: Process,
    server: VirtualRedis,
    { timeoutMs, isRaw }: { readonly timeoutMs: number; readonly isRaw: boolean },
  ) {
    this.#world = server.world;
    this.#process = process;
    this.#server = server;
    this.#timeoutMs = timeoutMs;
    this.#isRaw = isRaw;
  }

  send(command: string, args: readonly (string | number | Buffer)[]): Promise<unknown> {
    const words = args.map(String);
    return this.request(() => this.#server.execute(this.#process.name, command, words));
  }

  /** Sends a request. @param act the action that the server executes */
  request(act: () => Promise<unknown>): Promise<unknown> {
    const world = this.#world;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    if (this.cutUntilMs > world.nowMs) {
      world.in(world.chance.between(1, 200), this.#process, () => reject(new UnavailableError("cut off")));
      return promise;
    }
    const sent: Sent = { isLost: false, isSettled: false, reject };
    this.#inFlight.push(sent);
    const answer = (settle: () => void): void => {
      if (sent.isSettled) return;
      sent.isSettled = true;
      this.#inFlight = this.#inFlight.filter((one) => one !== sent);
      settle();
    };
    const connection = this.#connection;
    this.#arrivesMs = Math.max(this.#arrivesMs, world.nowMs + latencyMs(world)) + 0.001;
    world.in(this.#arrivesMs - world.nowMs, this.#server.process, async () => {
      if (sent.isLost) return;
      const outcome = await act().then(
        (reply) => () => resolve(reply),
        (error: unknown) => () => reject(this.#isRaw ? error : toBusError(error)),
      );
      if (connection !== this.#connection) return;
      this.#answersMs = Math.max(this.#answersMs, world.nowMs + latencyMs(world)) + 0.001;
      world.in(this.#answersMs - world.nowMs, this.#process, () => answer(outcome));
    });
    world.in(this.#timeoutMs, this.#process, () => {
      if (!sent.isSettled) this.#drop(this.#inFlight.length, new UnavailableError("no reply in time"));
    });
    return promise;
  }

  /** Cuts the connection, and prevents a new one for `forMs`. */
  cut(forMs: number): void {
    this.cutUntilMs = this.#world.nowMs + forMs;
    this.#drop(this.#countArrived(), new UnavailableError("the connection is lost"));
  }

  /** Called when the process dies. The server receives a random part of the commands in flight. */
  abandon(): void {
    this.#drop(this.#countArrived(), undefined);
  }

  #countArrived(): number {
    return Math.floor(this.#world.chance.between(0, this.#inFlight.length + 1));
  }

  /** @param arriving number of commands in flight, from the first, that still reach the server */
  #drop(arriving: number, error: Error | undefined): void {
    const dropped = this.#inFlight;
    this.#inFlight = [];
    this.#connection++;
    this.#arrivesMs = 0;
    this.#answersMs = 0;
    dropped.forEach((sent, place) => {
      sent.isLost = place >= arriving;
      sent.isSettled = true;
      if (error) this.#world.in(0, this.#process, () => sent.reject(error));
    });
  }
}

/** Returns a latency: mostly a few milliseconds, rarely longer than any timeout. */
function latencyMs({ chance }: World): number {
  if (chance.is(0.93)) return chance.between(0.2, 20);
  return chance.is(0.8) ? chance.between(20, 2_000) : chance.between(2_000, 20_000);
}
