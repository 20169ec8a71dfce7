import { toBusError } from "../../src/bus/connection/redis-errors.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import type { VirtualRedis } from "./virtual-redis.ts";
import type { Process, World } from "./world.ts";

interface Sent {
  /** It is on a connection that was cut before the server had it. */
  isLost: boolean;
  isAnswered: boolean;
  readonly reject: (error: Error) => void;
}

/**
 * One connection after the other between a process and the server. Commands and replies keep their order on it and take their time;
 * one that is cut loses what had not arrived, from some command on, and nobody at its near end knows which that was.
 */
export class Link {
  readonly #world: World;
  readonly #process: Process;
  readonly #server: VirtualRedis;
  readonly #timeoutMs: number;
  /** Own errors of Redis as they are, or as the general connection throws them. */
  readonly #isRaw: boolean;
  #underWay: Sent[] = [];
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

  /** @param act what the server does */
  request(act: () => Promise<unknown>): Promise<unknown> {
    const world = this.#world;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    if (this.cutUntilMs > world.nowMs) {
      world.in(world.chance.between(1, 200), this.#process, () => reject(new UnavailableError("cut off")));
      return promise;
    }
    const sent: Sent = { isLost: false, isAnswered: false, reject };
    this.#underWay.push(sent);
    const answer = (settle: () => void): void => {
      if (sent.isAnswered) return;
      sent.isAnswered = true;
      this.#underWay = this.#underWay.filter((one) => one !== sent);
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
      if (!sent.isAnswered) this.#drop(this.#underWay.length, new UnavailableError("no answer in time"));
    });
    return promise;
  }

  /** The connection ends; for so long there is no other. */
  cut(forMs: number): void {
    this.cutUntilMs = this.#world.nowMs + forMs;
    this.#drop(this.#arrived(), new UnavailableError("the connection is lost"));
  }

  /** The process is gone: of what it has sent the server gets a part. */
  abandon(): void {
    this.#drop(this.#arrived(), undefined);
  }

  #arrived(): number {
    return Math.floor(this.#world.chance.between(0, this.#underWay.length + 1));
  }

  /** @param arriving of those under way so many, the first, reach the server all the same */
  #drop(arriving: number, error: Error | undefined): void {
    const dropped = this.#underWay;
    this.#underWay = [];
    this.#connection++;
    this.#arrivesMs = 0;
    this.#answersMs = 0;
    dropped.forEach((sent, place) => {
      sent.isLost = place >= arriving;
      sent.isAnswered = true;
      if (error) this.#world.in(0, this.#process, () => sent.reject(error));
    });
  }
}

/** Mostly some milliseconds; now and then longer than anybody waits. */
function latencyMs({ chance }: World): number {
  if (chance.is(0.93)) return chance.between(0.2, 20);
  return chance.is(0.8) ? chance.between(20, 2_000) : chance.between(2_000, 20_000);
}
