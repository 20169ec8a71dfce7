/** What a blank line ends. */
export interface Block {
  /** Whether it is an event. */
  readonly hasData: boolean;
  /** The last `id` field in it that counts; undefined where it has none, and the id of before carries over. */
  readonly id: string | undefined;
}

/** The blocks of a piece, in their order, of which the client tells those with data. */
export class BlockQueue {
  readonly #onCheckpoint: (id: string) => void;
  #blocks: Block[] = [];
  #next = 0;

  constructor(onCheckpoint: (id: string) => void) {
    this.#onCheckpoint = onCheckpoint;
  }

  add(block: Block): void {
    this.#blocks.push(block);
  }

  /** The block of the event that the client tells now. */
  next(): Block {
    this.tellCheckpoints();
    const block = this.#blocks[this.#next++];
    if (block === undefined) throw new Error("The client tells an event that did not come");
    return block;
  }

  /** Those that come before the next event. */
  tellCheckpoints(): void {
    for (;;) {
      const block = this.#blocks[this.#next];
      if (block === undefined || block.hasData) return;
      this.#next += 1;
      if (block.id !== undefined) this.#onCheckpoint(block.id);
    }
  }

  /** The client has read the piece. */
  settle(): void {
    this.tellCheckpoints();
    if (this.#next < this.#blocks.length) throw new Error("The client did not tell an event that came");
    this.#blocks = [];
    this.#next = 0;
  }
}
