/** One block of a server-sent event stream. A block that only moves the position has `data: undefined`. */
export interface StreamedEvent {
  readonly id: string;
  readonly data: string | undefined;
}

export interface EventStreamReader {
  /** Returns the next event with data, or `undefined` when the stream has ended. */
  readonly next: () => Promise<StreamedEvent | undefined>;
  /** Returns the next `count` events. Throws when the stream ends before. */
  readonly take: (count: number) => Promise<readonly StreamedEvent[]>;
  /** Returns the last received id, of an event with or without data. Waits for the first id. */
  readonly lastId: () => Promise<string>;
  readonly close: () => Promise<void>;
}

export function readEventStream(response: Response): EventStreamReader {
  if (response.status !== 200 || !response.body) throw new Error(`no stream: ${response.status}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let lastId = "";

  function nextBlock(): StreamedEvent | undefined {
    const end = rest.indexOf("\n\n");
    if (end < 0) return undefined;
    const lines = rest.slice(0, end).split("\n");
    rest = rest.slice(end + 2);
    const values = (name: string) =>
      lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
    lastId = values("id").at(-1) ?? lastId;
    const data = values("data");
    const isEvent = data.length > 0 && values("event").length === 0;
    return { id: lastId, data: isEvent ? data.join("\n") : undefined };
  }

  async function nextOf(fits: (block: StreamedEvent) => boolean): Promise<StreamedEvent | undefined> {
    for (;;) {
      for (let block = nextBlock(); block; block = nextBlock()) if (fits(block)) return block;
      const { done, value } = await reader.read();
      if (done) return undefined;
      rest += value;
    }
  }

  const next = (): Promise<StreamedEvent | undefined> => nextOf(({ data }) => data !== undefined);

  return {
    next,
    async take(count) {
      const events: StreamedEvent[] = [];
      while (events.length < count) {
        const event = await next();
        if (!event) throw new Error(`the stream ended after ${events.length} of ${count} events`);
        events.push(event);
      }
      return events;
    },
    async lastId() {
      if (lastId === "") await nextOf(({ id }) => id !== "");
      return lastId;
    },
    close: () => reader.cancel(),
  };
}
