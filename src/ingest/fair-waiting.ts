/** A thing that waits, of a channel. */
export interface Waiting {
  readonly channel: { readonly identity: { readonly number: number; readonly organizationId: string } };
  /** What it holds besides its place. */
  readonly bytes: number;
}

interface Line<T> {
  /** By the channel's number. */
  readonly things: Map<number, T>;
  bytes: number;
}

/**
 * Things that wait, one of a channel, in a bounded number and size. Organizations take turns, and where there is no room the one
 * that has the most waiting gives way: what one brings neither drops nor delays another's.
 */
export class FairWaiting<T extends Waiting> {
  readonly #most: { readonly things: number; readonly bytes: number };
  /** By organization, in the order of their turns. */
  readonly #lines = new Map<string, Line<T>>();
  #things = 0;
  #bytes = 0;

  constructor(most: { readonly things: number; readonly bytes: number }) {
    this.#most = most;
  }

  find({ number, organizationId }: Waiting["channel"]["identity"]): T | undefined {
    return this.#lines.get(organizationId)?.things.get(number);
  }

  /** Puts it behind its organization's others, or in the place of its channel's. Answers what had to give way, itself maybe. */
  put(thing: T): readonly T[] {
    const { number, organizationId } = thing.channel.identity;
    const line = this.#lines.get(organizationId) ?? { things: new Map(), bytes: 0 };
    this.#lines.set(organizationId, line);
    const before = line.things.get(number);
    if (before) this.#take(organizationId, line, before);
    // Taking the last one has ended the line.
    this.#lines.set(organizationId, line);
    line.things.set(number, thing);
    line.bytes += thing.bytes;
    this.#things++;
    this.#bytes += thing.bytes;
    const gone: T[] = [];
    while (this.#things > this.#most.things || this.#bytes > this.#most.bytes) gone.push(this.#giveWay());
    return gone;
  }

  /** The one whose turn it is; undefined where nothing waits. */
  peek(): T | undefined {
    const [line] = this.#lines.values();
    return line?.things.values().next().value;
  }

  /** Takes it; its organization goes behind all others. */
  shift(): T | undefined {
    const [next] = this.#lines;
    const thing = this.peek();
    if (next === undefined || thing === undefined) return undefined;
    const [organizationId, line] = next;
    this.#take(organizationId, line, thing);
    if (this.#lines.delete(organizationId)) this.#lines.set(organizationId, line);
    return thing;
  }

  /** The newest of the organization that holds the largest part of what there is. */
  #giveWay(): T {
    let heaviest: [string, Line<T>] | undefined;
    for (const each of this.#lines)
      if (heaviest === undefined || this.#partOf(each[1]) >= this.#partOf(heaviest[1])) heaviest = each;
    const newest = heaviest && [...heaviest[1].things.values()].at(-1);
    if (heaviest === undefined || newest === undefined) throw new Error("nothing waits, and it is too much");
    this.#take(...heaviest, newest);
    return newest;
  }

  #partOf({ things, bytes }: Line<T>): number {
    return things.size / this.#most.things + bytes / this.#most.bytes;
  }

  #take(organizationId: string, line: Line<T>, thing: T): void {
    line.things.delete(thing.channel.identity.number);
    line.bytes -= thing.bytes;
    this.#things--;
    this.#bytes -= thing.bytes;
    if (line.things.size === 0) this.#lines.delete(organizationId);
  }
}
