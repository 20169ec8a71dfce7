/** A sample that waits, of a channel. */
export interface QueuedSample {
  readonly channel: { readonly identity: { readonly number: number; readonly organizationId: string } };
  /** What it holds besides its place. */
  readonly bytes: number;
}

interface OrganizationQueue<T> {
  /** By the channel's number. */
  readonly samples: Map<number, T>;
  bytes: number;
}

/**
 * Things that wait, one of a channel, in a bounded number and size. Organizations take turns, and where there is no room the one
 * that has the max waiting gives way: what one brings neither drops nor delays another's.
 */
export class SampleQueue<T extends QueuedSample> {
  readonly #max: { readonly samples: number; readonly bytes: number };
  /** By organization, in the order of their turns. */
  readonly #queues = new Map<string, OrganizationQueue<T>>();
  #samples = 0;
  #bytes = 0;

  constructor(max: { readonly samples: number; readonly bytes: number }) {
    this.#max = max;
  }

  find({ number, organizationId }: QueuedSample["channel"]["identity"]): T | undefined {
    return this.#queues.get(organizationId)?.samples.get(number);
  }

  /** Puts it behind its organization's others, or in the place of its channel's. Answers what had to give way, itself maybe. */
  put(sample: T): readonly T[] {
    const { number, organizationId } = sample.channel.identity;
    const queue = this.#queues.get(organizationId) ?? { samples: new Map(), bytes: 0 };
    this.#queues.set(organizationId, queue);
    const before = queue.samples.get(number);
    if (before) this.#take(organizationId, queue, before);
    // Taking the last one has ended the queue.
    this.#queues.set(organizationId, queue);
    queue.samples.set(number, sample);
    queue.bytes += sample.bytes;
    this.#samples++;
    this.#bytes += sample.bytes;
    const evicted: T[] = [];
    while (this.#samples > this.#max.samples || this.#bytes > this.#max.bytes) evicted.push(this.#evictOne());
    return evicted;
  }

  /** The one whose turn it is; undefined where nothing waits. */
  peek(): T | undefined {
    const [queue] = this.#queues.values();
    return queue?.samples.values().next().value;
  }

  /** Takes it; its organization goes behind all others. */
  shift(): T | undefined {
    const [next] = this.#queues;
    const sample = this.peek();
    if (next === undefined || sample === undefined) return undefined;
    const [organizationId, queue] = next;
    this.#take(organizationId, queue, sample);
    if (this.#queues.delete(organizationId)) this.#queues.set(organizationId, queue);
    return sample;
  }

  /** The newest of the organization that holds the largest part of what there is. */
  #evictOne(): T {
    let heaviest: [string, OrganizationQueue<T>] | undefined;
    for (const each of this.#queues)
      if (heaviest === undefined || this.#computeShare(each[1]) >= this.#computeShare(heaviest[1])) heaviest = each;
    const newest = heaviest && [...heaviest[1].samples.values()].at(-1);
    if (heaviest === undefined || newest === undefined) throw new Error("nothing waits, and it is too much");
    this.#take(...heaviest, newest);
    return newest;
  }

  #computeShare({ samples, bytes }: OrganizationQueue<T>): number {
    return samples.size / this.#max.samples + bytes / this.#max.bytes;
  }

  #take(organizationId: string, queue: OrganizationQueue<T>, sample: T): void {
    queue.samples.delete(sample.channel.identity.number);
    queue.bytes -= sample.bytes;
    this.#samples--;
    this.#bytes -= sample.bytes;
    if (queue.samples.size === 0) this.#queues.delete(organizationId);
  }
}
