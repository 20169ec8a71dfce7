export interface QueuedSample {
  readonly channel: { readonly identity: { readonly number: number; readonly organizationId: string } };
  readonly bytes: number;
}

interface OrganizationQueue<T> {
  /** Waiting samples by internal channel id. */
  readonly samples: Map<number, T>;
  bytes: number;
}

/**
 * A bounded queue with at most one sample per channel, served round-robin between organizations. When it is full, the organization with the
 * most queued samples or bytes loses its newest sample. No organization can therefore displace or delay another.
 */
export class SampleQueue<T extends QueuedSample> {
  readonly #max: { readonly samples: number; readonly bytes: number };
  /** Queues by organization id. The first organization is served next. */
  readonly #queues = new Map<string, OrganizationQueue<T>>();
  #samples = 0;
  #bytes = 0;

  constructor(max: { readonly samples: number; readonly bytes: number }) {
    this.#max = max;
  }

  find({ number, organizationId }: QueuedSample["channel"]["identity"]): T | undefined {
    return this.#queues.get(organizationId)?.samples.get(number);
  }

  /** Adds a sample, or replaces the waiting sample of the same channel. Returns the evicted samples, which may include the new sample. */
  put(sample: T): readonly T[] {
    const { number, organizationId } = sample.channel.identity;
    const queue = this.#queues.get(organizationId) ?? { samples: new Map(), bytes: 0 };
    this.#queues.set(organizationId, queue);
    const before = queue.samples.get(number);
    if (before) this.#take(organizationId, queue, before);
    // The queue was deleted together with its last sample, so it is added again.
    this.#queues.set(organizationId, queue);
    queue.samples.set(number, sample);
    queue.bytes += sample.bytes;
    this.#samples++;
    this.#bytes += sample.bytes;
    const evicted: T[] = [];
    while (this.#samples > this.#max.samples || this.#bytes > this.#max.bytes) evicted.push(this.#evictOne());
    return evicted;
  }

  peek(): T | undefined {
    const [queue] = this.#queues.values();
    return queue?.samples.values().next().value;
  }

  /** Removes and returns the next sample. Its organization is then served last. */
  shift(): T | undefined {
    const [next] = this.#queues;
    const sample = this.peek();
    if (next === undefined || sample === undefined) return undefined;
    const [organizationId, queue] = next;
    this.#take(organizationId, queue, sample);
    if (this.#queues.delete(organizationId)) this.#queues.set(organizationId, queue);
    return sample;
  }

  /** Removes and returns the newest sample of the organization that has the most samples or bytes. */
  #evictOne(): T {
    let heaviest: [string, OrganizationQueue<T>] | undefined;
    for (const each of this.#queues)
      if (heaviest === undefined || this.#computeShare(each[1]) >= this.#computeShare(heaviest[1]))
        heaviest = each;
    const newest = heaviest && [...heaviest[1].samples.values()].at(-1);
    if (heaviest === undefined || newest === undefined)
      throw new Error("the sample queue is empty but over its limit");
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
