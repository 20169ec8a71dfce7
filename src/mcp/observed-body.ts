/** A response body that knows whether its reader has accepted all of its data. */
export interface ObservedBody {
  readonly body: ReadableStream<Uint8Array>;
  /** Returns true while the reader waits for data. */
  readonly isDrained: () => boolean;
}

/** Passes a body on, one chunk at a time. The MCP SDK buffers notifications without limit, so a stream must wait for its client. */
export function observeBody(source: ReadableStream<Uint8Array>): ObservedBody {
  const reader = source.getReader();
  let isWaiting = false;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        isWaiting = true;
        const { done, value } = await reader.read();
        isWaiting = false;
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return { body, isDrained: () => isWaiting };
}
